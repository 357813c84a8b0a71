#include "keel_allocator.h"

#include <c10/core/impl/GPUTrace.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <pthread.h>

#include <optional>
#include <utility>

namespace keel::torch {
namespace {

// From here on PyTorch says only that it is too much.
constexpr std::size_t kExabyte = std::size_t{1} << 60;

std::string Readable(std::size_t size) {
  constexpr std::array<const char*, 4> kUnits = {"bytes", "KiB", "MiB", "GiB"};
  auto value = static_cast<double>(size);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.2f %s", value, kUnits[unit]);
  return text.data();
}

// PyTorch's own ways to get memory back, as the last resort of a request.
void AddFreeMemoryCallbacks(memory::DeviceAllocator& allocator) {
  allocator.AddOutOfMemoryCallback([](Bytes) {
    for (const auto& name : c10::FreeCudaMemoryCallbacksRegistry()->Keys()) {
      try {
        c10::FreeCudaMemoryCallbacksRegistry()->Create(name)->Execute();
      } catch (const std::exception& error) {  // nothing may pass through Keel, whoever asked
        TORCH_WARN(name, " could not free memory: ", error.what());
      }
    }
  });
}

}  // namespace

namespace {

std::atomic<bool> forked{false};

}  // namespace

const std::shared_ptr<KeelAllocator>& TheAllocator() {
  // Never destroyed: tensors are freed until the very end of the process.
  static const auto* const allocator = [] {
    pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); });
    return new std::shared_ptr<KeelAllocator>(std::make_shared<KeelAllocator>());
  }();
  return *allocator;
}

bool IsForked() { return forked.load(std::memory_order_relaxed); }

void KeelAllocator::init(int device_count) {
  TORCH_CHECK(device_count <= static_cast<int>(kMaxDevices), "Keel knows at most ", kMaxDevices,
              " devices in PyTorch, here are ", device_count);
  device_count_ = device_count;
}

Device& KeelAllocator::Get(c10::DeviceIndex index) {
  TORCH_CHECK(index >= 0 && index < device_count_, "there is no CUDA device ",
              static_cast<int>(index), device_count_ < 0 ? ": CUDA is not initialized" : "");
  if (Device* const device = Find(index)) return *device;
  const std::lock_guard lock(mutex_);
  if (Device* const device = Find(index)) return *device;
  auto memory = memory::ProcessMemory::Global().For({.driver = "cuda", .ordinal = index});
  Check(memory.status());
  AddFreeMemoryCallbacks((*memory)->allocator());
  devices_[index].store(new Device(*std::move(memory)));  // lives as long as the process
  return *Find(index);
}

// --- Handing out ------------------------------------------------------------------------------

void* KeelAllocator::Allocate(c10::DeviceIndex index, std::size_t size, cudaStream_t stream) {
  if (size == 0) return nullptr;
  TORCH_CHECK_WITH(OutOfMemoryError, size < kExabyte,
                   "CUDA out of memory. Tried to allocate more than 1EB memory.");
  if (C10_UNLIKELY(!isEnabled())) return AllocateUncached(index, size);
  Device& device = Get(index);
  Device::TakeFilterError();  // of a request that was not PyTorch's
  const hal::StreamHandle handle = device.HandleOf(stream);
  std::optional<telemetry::ScopedStack> scope;
  Contexts::Gathered context;
  if (contexts_.recording()) {
    context = contexts_.Gather(Contexts::Call::kAllocation);
    scope.emplace(context.stack);
  }
  const Result<DeviceAddress> block = device.allocator().Allocate(Bytes(size), handle);
  if (const std::exception_ptr thrown = Device::TakeFilterError(); thrown != nullptr) {
    if (block.ok()) static_cast<void>(device.allocator().Free(*block));
    std::rethrow_exception(thrown);
  }
  if (!block.ok()) Fail(index, size, block.status());
  void* const pointer = PointerTo(*block);
  if (scope.has_value()) contexts_.KeepForBlock(pointer, std::move(context));
  if (c10::memoryProfilingEnabled()) Report(index, pointer, static_cast<std::int64_t>(size));
  if (const auto* const trace = c10::impl::GPUTrace::get_trace(); C10_UNLIKELY(trace != nullptr)) {
    (*trace)->trace_gpu_memory_allocation(c10::kCUDA, block->value());
  }
  return pointer;
}

void* KeelAllocator::AllocateUncached(c10::DeviceIndex index, std::size_t size) {
  auto memory = hal::PlainMemory::Create(Get(index).hal(), Bytes(size));
  if (!memory.ok()) Fail(index, size, memory.status());
  void* const pointer = PointerTo(memory->address());
  const std::lock_guard lock(mutex_);
  uncached_.insert_or_assign(pointer, *std::move(memory));
  has_uncached_.store(true);
  return pointer;
}

std::optional<Status> KeelAllocator::FreeUncached(void* pointer) {
  if (C10_LIKELY(!has_uncached_.load(std::memory_order_relaxed))) return std::nullopt;
  std::unique_lock lock(mutex_);
  auto found = uncached_.extract(pointer);
  lock.unlock();  // the driver waits for the device
  if (found.empty()) return std::nullopt;
  return found.mapped().Close();
}

bool KeelAllocator::IsUncached(void* pointer) {
  if (C10_LIKELY(!has_uncached_.load(std::memory_order_relaxed))) return false;
  const std::lock_guard lock(mutex_);
  return uncached_.contains(pointer);
}

void KeelAllocator::Fail(c10::DeviceIndex index, std::size_t size, const Status& status) {
  if (status.code() != StatusCode::kResourceExhausted) Check(status);
  Device& device = Get(index);
  const auto info = device.hal()->GetMemoryInfo();
  const std::size_t total = info.ok() ? info->total.count() : 0;
  const std::size_t free = info.ok() ? info->free.count() : 0;
  c10::reportOutOfMemoryToProfiler(
      static_cast<std::int64_t>(size), device.allocator().allocated().count(),
      device.allocator().reserved().count(), c10::Device(c10::kCUDA, index));
  std::vector<caching::OutOfMemoryObserver> observers;
  {
    const std::lock_guard lock(mutex_);
    observers = observers_;
  }
  for (const auto& observer : observers) observer(index, size, total, free);
  // The beginning is what programs that try again look for.
  TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory. Tried to allocate ",
                   Readable(size), ". GPU ", static_cast<int>(index), " has a total capacity of ",
                   Readable(total), " of which ", Readable(free), " is free.\n", status.message());
  std::abort();  // not reached
}

std::optional<telemetry::ScopedStack> KeelAllocator::NameEvents() {
  if (!contexts_.recording()) return std::nullopt;
  return std::optional<telemetry::ScopedStack>(std::in_place,
                                               contexts_.Gather(Contexts::Call::kOther).stack);
}

void KeelAllocator::Report(c10::DeviceIndex index, void* pointer, std::int64_t size) {
  memory::DeviceAllocator& allocator = Get(index).allocator();
  c10::reportMemoryUsageToProfiler(pointer, size, allocator.allocated().count(),
                                   allocator.reserved().count(), c10::Device(c10::kCUDA, index));
}

Status KeelAllocator::Free(void* pointer) {
  if (IsForked()) return FailedPrecondition("the memory is the parent's");
  if (std::optional<Status> freed = FreeUncached(pointer)) return *std::move(freed);
  const DeviceAddress address(reinterpret_cast<std::uint64_t>(pointer));
  const std::optional<telemetry::ScopedStack> scope = NameEvents();
  contexts_.ForgetBlock(pointer);
  if (const auto* const trace = c10::impl::GPUTrace::get_trace(); C10_UNLIKELY(trace != nullptr)) {
    (*trace)->trace_gpu_memory_deallocation(c10::kCUDA, address.value());
  }
  const c10::DeviceIndex index = DeviceOf(address);
  if (index < 0) return InvalidArgument("no device is in use");
  memory::DeviceAllocator& allocator = Find(index)->allocator();
  std::int64_t size = 0;
  if (C10_UNLIKELY(c10::memoryProfilingEnabled())) {
    const auto block = allocator.FindBlock(address);
    if (block.has_value()) size = static_cast<std::int64_t>(block->requested.count());
  }
  Status status = allocator.Free(address);
  if (size != 0 && status.ok()) Report(index, pointer, -size);
  return status;
}

c10::DeviceIndex KeelAllocator::DeviceOf(DeviceAddress block) const {
  c10::DeviceIndex found = -1;
  for (int i = 0; i < device_count_; ++i) {
    const auto index = static_cast<c10::DeviceIndex>(i);
    if (Find(index) == nullptr) continue;
    // Most processes use one device: nothing has to be looked up there.
    if (found >= 0 && Find(found)->allocator().FindBlock(block).has_value()) break;
    found = index;
  }
  return found;
}

void KeelAllocator::Delete(void* pointer) {
  if (pointer == nullptr) return;
  const Status status = TheAllocator()->Free(pointer);
  // In a forked child there is nothing to give back; the parent has it.
  if (status.ok() || status.code() == StatusCode::kFailedPrecondition) return;
  TORCH_WARN("memory of a tensor could not be freed: ", status.ToString());
}

c10::DataPtr KeelAllocator::allocate(std::size_t size) {
  c10::DeviceIndex device = 0;
  C10_CUDA_CHECK(c10::cuda::GetDevice(&device));
  void* const pointer = Allocate(device, size, c10::cuda::getCurrentCUDAStream(device));
  return {pointer, pointer, &Delete, c10::Device(c10::kCUDA, device)};
}

c10::DeleterFnPtr KeelAllocator::raw_deleter() const { return &Delete; }

void KeelAllocator::copy_data(void* destination, const void* source, std::size_t size) const {
  C10_CUDA_CHECK(cudaMemcpy(destination, source, size, cudaMemcpyDeviceToDevice));
}

void* KeelAllocator::raw_alloc(std::size_t size) {
  c10::DeviceIndex device = 0;
  C10_CUDA_CHECK(c10::cuda::GetDevice(&device));
  return Allocate(device, size, c10::cuda::getCurrentCUDAStream(device));
}

void* KeelAllocator::raw_alloc_with_stream(std::size_t size, cudaStream_t stream) {
  c10::DeviceIndex device = 0;
  C10_CUDA_CHECK(c10::cuda::GetDevice(&device));
  return Allocate(device, size, stream);
}

void KeelAllocator::raw_delete(void* pointer) {
  if (pointer != nullptr) Check(Free(pointer));
}

void KeelAllocator::recordStream(const c10::DataPtr& pointer, c10::cuda::CUDAStream stream) {
  // As PyTorch's own: of memory that came from elsewhere there is nothing to record.
  const c10::DeviceIndex index = pointer.device().index();
  if (pointer.get() == nullptr || pointer.get_deleter() != &Delete) return;
  if (IsUncached(pointer.get())) return;  // its free waits for everything
  // The default stream of every device is the same number: taken for the block's own it would be no
  // use at all.
  TORCH_CHECK_NOT_IMPLEMENTED(
      stream.device_index() == index, "Keel cannot keep a block of device ",
      static_cast<int>(index), " for a stream of device ", static_cast<int>(stream.device_index()),
      ": let the block's own stream wait for that one before the tensor goes");
  Device& device = Get(index);
  const DeviceAddress address(reinterpret_cast<std::uint64_t>(pointer.get()));
  Check(device.allocator().RecordUse(address, device.HandleOf(stream.stream())));
}

void* KeelAllocator::getBaseAllocation(void* pointer, std::size_t* size) {
  const DeviceAddress address(reinterpret_cast<std::uint64_t>(pointer));
  for (int i = 0; i < device_count_; ++i) {
    Device* const device = Find(static_cast<c10::DeviceIndex>(i));
    if (device == nullptr) continue;
    const auto block = device->allocator().Find(address);
    if (!block.ok()) continue;
    if (size != nullptr) *size = block->size.count();
    return PointerTo(block->address);
  }
  TORCH_CHECK(false, pointer, " is not in memory that Keel handed out");
}

// --- Devices and limits -----------------------------------------------------------------------

double KeelAllocator::getMemoryFraction(c10::DeviceIndex index) {
  Device& device = Get(index);
  const auto total = device.hal()->info().memory.count();
  const auto limit = device.allocator().limit().count();
  return limit >= total ? 1.0 : static_cast<double>(limit) / static_cast<double>(total);
}

void KeelAllocator::setMemoryFraction(double fraction, c10::DeviceIndex device) {
  Check(Get(device).allocator().SetFraction(fraction));
}

void KeelAllocator::emptyCache(c10::MempoolId_t pool) {
  if (IsForked()) return;
  const std::optional<telemetry::ScopedStack> scope = NameEvents();
  for (int i = 0; i < device_count_; ++i) {
    Device* const device = Find(static_cast<c10::DeviceIndex>(i));
    if (device == nullptr) continue;
    const Status status = device->allocator().EmptyCache();
    // Of one pool it is asked for by that pool's destructor, which nothing may leave.
    if (pool == c10::MempoolId_t{0, 0}) Check(status);
    if (!status.ok()) TORCH_WARN("memory of a pool was not given back: ", status.ToString());
  }
}

void KeelAllocator::enablePeerAccess(c10::DeviceIndex device, c10::DeviceIndex peer) {
  Device& user = Get(device);
  Device& owner = Get(peer);
  Check(user.hal()->EnablePeerAccess(owner.hal()->id()));
  Check(owner.allocator().AddPeer(user.hal()));
}

cudaError_t KeelAllocator::memcpyAsync(void* destination, int destination_device,
                                       const void* source, int source_device, std::size_t size,
                                       cudaStream_t stream, bool peers) {
  if (peers || destination_device == source_device) {
    return cudaMemcpyAsync(destination, source, size, cudaMemcpyDeviceToDevice, stream);
  }
  // Mapped memory without access for the peer is nothing that the plain call can copy.
  return cudaMemcpyPeerAsync(destination, destination_device, source, source_device, size, stream);
}

// --- Pools ------------------------------------------------------------------------------------

void KeelAllocator::beginAllocateToPool(c10::DeviceIndex device, c10::MempoolId_t pool,
                                        std::function<bool(cudaStream_t)> filter) {
  Get(device).Begin(pool, std::move(filter));
}

void KeelAllocator::endAllocateToPool(c10::DeviceIndex device, c10::MempoolId_t pool) {
  Get(device).End(pool);
}

void KeelAllocator::releasePool(c10::DeviceIndex device, c10::MempoolId_t pool) {
  if (IsForked()) return;
  try {
    Get(device).Leave(pool);
  } catch (const std::exception& error) {  // called from destructors
    TORCH_WARN("a pool was not released: ", error.what());
  }
}

int KeelAllocator::getPoolUseCount(c10::DeviceIndex device, c10::MempoolId_t pool) {
  return Get(device).Users(pool);
}

void KeelAllocator::createOrIncrefPool(c10::DeviceIndex device, c10::MempoolId_t pool,
                                       std::shared_ptr<caching::CUDAAllocator> allocator) {
  createOrIncrefPool(device, pool, allocator.get());
}

void KeelAllocator::createOrIncrefPool(c10::DeviceIndex device, c10::MempoolId_t pool,
                                       caching::CUDAAllocator* allocator) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      allocator == nullptr,
      "Keel cannot take the memory of a torch.cuda.MemPool from another allocator: leave the "
      "allocator out, or run this program without keel.torch.install()");
  Get(device).Enter(pool);
}

void KeelAllocator::setUseOnOOM(c10::DeviceIndex, c10::MempoolId_t, bool wanted) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      !wanted,
      "Keel does not lend the memory of a torch.cuda.MemPool to others: leave use_on_oom out");
}

namespace {

// What PyTorch keeps as the state of a pool.
struct PoolState : caching::AllocatorState {
  memory::PoolId pool = 0;
  std::vector<memory::PoolBlock> blocks;
  std::vector<std::shared_ptr<c10::GatheredContext>> frames;  // of each
};

}  // namespace

std::shared_ptr<caching::AllocatorState> KeelAllocator::getCheckpointState(c10::DeviceIndex device,
                                                                           c10::MempoolId_t pool) {
  auto state = std::make_shared<PoolState>();
  state->pool = Get(device).IdOf(pool);
  auto blocks = Get(device).allocator().PoolBlocks(state->pool);
  Check(blocks.status());
  state->blocks = *std::move(blocks);
  for (const memory::PoolBlock& block : state->blocks) {
    state->frames.push_back(contexts_.OfBlock(block.address.value()));
  }
  return state;
}

caching::CheckpointDelta KeelAllocator::setCheckpointPoolState(
    c10::DeviceIndex device, std::shared_ptr<caching::AllocatorState> state) {
  const auto* const wanted = dynamic_cast<const PoolState*>(state.get());
  TORCH_CHECK(wanted != nullptr, "the state of a memory pool is of another allocator");
  const std::optional<telemetry::ScopedStack> scope = NameEvents();
  const auto before = Get(device).allocator().RestorePool(wanted->pool, wanted->blocks);
  Check(before.status());
  // All that was live is freed, and all that is live is new, as PyTorch has it: of the tensors that
  // it was told are stale it takes the deleters, also of those whose block is the same as before.
  caching::CheckpointDelta delta;
  for (const DeviceAddress block : *before) {
    delta.ptrs_freed.push_back(PointerTo(block));
    contexts_.ForgetBlock(delta.ptrs_freed.back());
  }
  for (std::size_t i = 0; i < wanted->blocks.size(); ++i) {
    void* const pointer = PointerTo(wanted->blocks[i].address);
    contexts_.KeepForBlock(pointer, {.frames = wanted->frames[i]});
    delta.dataptrs_allocd.emplace_back(pointer, pointer, &Delete, c10::Device(c10::kCUDA, device));
  }
  return delta;
}

// --- What is not there ------------------------------------------------------------------------

void KeelAllocator::attachAllocatorTraceTracker(caching::AllocatorTraceTracker) {
  TORCH_CHECK_NOT_IMPLEMENTED(false,
                              "Keel does not tell trackers of each event: "
                              "torch.cuda.memory._record_memory_history keeps them");
}

caching::ShareableHandle KeelAllocator::shareIpcHandle(void*) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false,
      "CUDA tensors cannot be sent to other processes while Keel is PyTorch's allocator: "
      "send them from the CPU (tensor.cpu()), or run without keel.torch.install()");
}

std::shared_ptr<void> KeelAllocator::getIpcDevPtr(std::string) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, "CUDA tensors of other processes cannot be opened while Keel is PyTorch's allocator");
}

}  // namespace keel::torch
