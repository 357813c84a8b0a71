// libFuzzer target: what a worker, or the orchestrator, finds in a lane. The first byte says as
// what it is read. It may not crash the reader, and what is accepted must be written down as the
// same bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "task/messages.h"

namespace {

template <class Message>
void Check(const keel::Result<Message>& message, std::span<const std::byte> bytes) {
  if (message.ok() && !std::ranges::equal(keel::task::Encode(*message), bytes)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  switch (data[0] % 3) {
    case 0:
      Check(keel::task::DecodeTask(bytes), bytes);
      break;
    case 1:
      Check(keel::task::DecodeRequest(bytes), bytes);
      break;
    default:
      Check(keel::task::DecodeReply(bytes), bytes);
  }
  return 0;
}
