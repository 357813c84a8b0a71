// A program outside this tree: it knows only the installed headers and keel::keel. It opens a
// simulated device, fills memory on it and reads it back.

#include <cstdint>
#include <cstdio>
#include <vector>

#include "keel/base/version.h"
#include "keel/drivers/sim.h"
#include "keel/hal/driver.h"
#include "keel/hal/memory.h"
#include "keel/hal/stream.h"

static_assert(KEEL_VERSION ==
              KEEL_MAKE_VERSION(KEEL_VERSION_MAJOR, KEEL_VERSION_MINOR, KEEL_VERSION_PATCH));

namespace {

using namespace keel;

Status Run() {
  KEEL_ASSIGN(const auto driver, sim::CreateSimDriver({.memory = 64_MiB}));
  KEEL_ASSIGN(const auto device, driver->Open(0));
  KEEL_ASSIGN(const auto stream, hal::Stream::Create(device));
  KEEL_ASSIGN(const auto memory, hal::MappedMemory::Create(device, 2_MiB));
  std::vector<std::uint32_t> words(1024);
  KEEL_TRY(device->EnqueueFill(stream.get(), {memory.address(), 42, 4, words.size()}));
  KEEL_TRY(device->EnqueueCopy(stream.get(),
                               {hal::Location::Host(words.data()),
                                hal::Location::On(device->id(), memory.address()), Bytes(4096)}));
  for (const std::uint32_t word : words) {
    if (word != 42) return Internal("the bytes that came back are not those that were written");
  }
  // The process's own registry works as well.
  return hal::Registry::Global().Find("sim").status();
}

}  // namespace

int main() {
  const Status status = Run();
  std::printf("keel %s: %s\n", KEEL_VERSION_STRING, status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
