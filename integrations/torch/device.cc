#include <c10/util/Exception.h>

#include <utility>

#include "keel_allocator.h"

namespace keel::torch {
namespace {

// A filter is PyTorch's code and may throw; Keel's may not be passed by that.
thread_local std::exception_ptr filter_error;

// PyTorch knows the legacy default stream as zero.
cudaStream_t NativeOf(hal::StreamHandle stream) {
  const auto native =
      reinterpret_cast<cudaStream_t>(stream.value);  // NOLINT(performance-no-int-to-ptr)
  return native == cudaStreamLegacy ? nullptr : native;
}

}  // namespace

void* PointerTo(DeviceAddress address) {
  return reinterpret_cast<void*>(address.value());  // NOLINT(performance-no-int-to-ptr)
}

void Check(const Status& status) { TORCH_CHECK(status.ok(), status.ToString()); }

Device::Device(std::shared_ptr<memory::DeviceMemory> memory) : memory_(std::move(memory)) {}

hal::StreamHandle Device::HandleOf(cudaStream_t stream) {
  struct Last {
    const Device* device = nullptr;
    cudaStream_t stream = nullptr;
    hal::StreamHandle handle;
  };
  thread_local Last last;
  if (last.device == this && last.stream == stream) return last.handle;
  const std::lock_guard lock(mutex_);
  auto found = streams_.find(stream);
  if (found == streams_.end()) {
    const auto handle = hal()->BorrowStream(reinterpret_cast<std::uint64_t>(stream));
    Check(handle.status());
    found = streams_.emplace(stream, *handle).first;
  }
  last = {this, stream, found->second};
  return found->second;
}

memory::PoolId Device::Enter(c10::MempoolId_t id) {
  const std::lock_guard lock(mutex_);
  Pool& pool = pools_[id];
  if (pool.users++ == 0) {
    pool.id = allocator().CreatePool();
    names_.emplace(pool.id, id);
  }
  return pool.id;
}

Device::Pool& Device::Existing(c10::MempoolId_t id) {
  const auto found = pools_.find(id);
  TORCH_CHECK(found != pools_.end(), "there is no memory pool (", id.first, ", ", id.second,
              ") on this device, or nobody uses it any more");
  return found->second;
}

void Device::Begin(c10::MempoolId_t id, std::function<bool(cudaStream_t)> filter) {
  const memory::PoolId pool = Enter(id);
  const Status status =
      allocator().BeginPool(pool, [filter = std::move(filter)](hal::StreamHandle stream) {
        try {
          return filter(NativeOf(stream));
        } catch (...) {
          filter_error = std::current_exception();
          return false;
        }
      });
  if (!status.ok()) Leave(id);
  Check(status);
}

void Device::End(c10::MempoolId_t id) { Check(allocator().EndPool(IdOf(id))); }

void Device::Leave(c10::MempoolId_t id) {
  memory::PoolId last = 0;
  {
    const std::lock_guard lock(mutex_);
    Pool& pool = Existing(id);
    if (--pool.users > 0) return;
    last = pool.id;
    pools_.erase(id);
  }
  Check(allocator().ReleasePool(last));
}

memory::PoolId Device::IdOf(c10::MempoolId_t id) {
  const std::lock_guard lock(mutex_);
  return Existing(id).id;
}

int Device::Users(c10::MempoolId_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = pools_.find(id);
  return found == pools_.end() ? 0 : found->second.users;
}

c10::MempoolId_t Device::NameOf(memory::PoolId pool) {
  if (pool == 0) return {0, 0};
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(pool);
  return found == names_.end() ? c10::MempoolId_t{0, 0} : found->second;
}

std::exception_ptr Device::TakeFilterError() { return std::exchange(filter_error, nullptr); }

}  // namespace keel::torch
