#include "functions.h"

#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "keel/memory/process_memory.h"

namespace keel::torch {
namespace {

// PyTorch turns it into an exception of Python. Returning null would be a tensor at address zero.
[[noreturn]] void Throw(const Status& status) {
  const bool exhausted = status.code() == StatusCode::kResourceExhausted;
  throw std::runtime_error((exhausted ? "CUDA out of memory. " : "") + status.ToString());
}

template <class T>
T Take(Result<T> result) {
  if (!result.ok()) Throw(result.status());
  return *std::move(result);
}

std::shared_ptr<memory::DeviceMemory> MemoryOf(int device) {
  return Take(memory::ProcessMemory::Global().For({.driver = "cuda", .ordinal = device}));
}

// Borrowing asks the driver: once for each stream.
hal::StreamHandle HandleOf(const memory::DeviceMemory& memory, void* stream) {
  static std::mutex* const mutex = new std::mutex;  // lives as long as the process
  static auto* const known =
      new std::map<std::pair<const memory::DeviceMemory*, void*>, hal::StreamHandle>;
  const std::lock_guard lock(*mutex);
  const std::pair key(&memory, stream);
  if (const auto found = known->find(key); found != known->end()) return found->second;
  const auto native = reinterpret_cast<std::uint64_t>(stream);
  return known->emplace(key, Take(memory.device()->BorrowStream(native))).first->second;
}

// kResourceExhausted is the caller's; everything else is thrown.
Result<DeviceAddress> Allocate(std::ptrdiff_t size, int device, void* stream) {
  const auto memory = MemoryOf(device);
  Result<DeviceAddress> address = memory->allocator().Allocate(
      Bytes(static_cast<std::uint64_t>(size)), HandleOf(*memory, stream));
  if (!address.ok() && address.status().code() != StatusCode::kResourceExhausted) {
    Throw(address.status());
  }
  return address;
}

void* PointerTo(DeviceAddress address) {
  return reinterpret_cast<void*>(address.value());  // NOLINT(performance-no-int-to-ptr)
}

DeviceAddress AddressOf(void* pointer) {
  return DeviceAddress(reinterpret_cast<std::uint64_t>(pointer));
}

}  // namespace
}  // namespace keel::torch

void* keel_torch_alloc(std::ptrdiff_t size, int device, void* stream) {
  if (size == 0) return nullptr;
  return keel::torch::PointerTo(keel::torch::Take(keel::torch::Allocate(size, device, stream)));
}

void* keel_torch_try_alloc(std::ptrdiff_t size, int device, void* stream) {
  if (size == 0) return nullptr;
  const auto address = keel::torch::Allocate(size, device, stream);
  return address.ok() ? keel::torch::PointerTo(*address) : nullptr;
}

void keel_torch_free(void* pointer, std::ptrdiff_t, int device, void*) {
  if (pointer == nullptr) return;
  const auto memory =
      keel::memory::ProcessMemory::Global().For({.driver = "cuda", .ordinal = device});
  if (!memory.ok()) return;  // a forked child: the parent has it
  // Called from destructors: what cannot be freed stays, and Keel's statistics show it.
  static_cast<void>((*memory)->allocator().Free(keel::torch::AddressOf(pointer)));
}

void keel_torch_record_stream(void* pointer, void* stream) {
  if (pointer == nullptr) return;
  keel::Status status = keel::InvalidArgument("no device is in use");
  for (const auto& memory : keel::torch::Take(keel::memory::ProcessMemory::Global().List())) {
    if (memory->name().driver != "cuda") continue;
    const auto address = keel::torch::AddressOf(pointer);
    if (!memory->allocator().FindBlock(address).has_value()) continue;
    status = memory->allocator().RecordUse(address, keel::torch::HandleOf(*memory, stream));
    break;
  }
  if (!status.ok()) keel::torch::Throw(status);
}

void keel_torch_empty_cache() {
  for (const auto& memory : keel::torch::Take(keel::memory::ProcessMemory::Global().List())) {
    const keel::Status status = memory->allocator().EmptyCache();
    if (!status.ok()) keel::torch::Throw(status);
  }
}

void keel_torch_set_fraction(double fraction, int device) {
  const keel::Status status = keel::torch::MemoryOf(device)->allocator().SetFraction(fraction);
  if (!status.ok()) keel::torch::Throw(status);
}
