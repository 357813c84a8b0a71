// KeelAllocator: PyTorch's interface of a device allocator, over the allocators of the process.
//
// Compiled on the user's machine against the PyTorch that is installed there, because that
// interface changes with every release (keel.torch does it, once, and keeps the result). Known to
// compile with 2.10 to 2.15. Functions that some releases have and others have not, or have with
// other arguments, are declared here without `override`, in every form: whichever the release knows
// is the one.
//
// What it does not do says so when it is called: sharing memory between processes (shareIpcHandle),
// pools over other allocators.
//
// Any thread, as PyTorch asks.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "contexts.h"
#include "keel/hal/memory.h"
#include "keel/memory/process_memory.h"

namespace keel::torch {

namespace caching = c10::cuda::CUDACachingAllocator;

// One device: its allocators, and what PyTorch's names for streams and pools are there.
class Device {
 public:
  explicit Device(std::shared_ptr<memory::DeviceMemory> memory);

  memory::DeviceAllocator& allocator() const { return memory_->allocator(); }
  const std::shared_ptr<hal::Device>& hal() const { return memory_->device(); }

  // Asks the driver once for each stream.
  hal::StreamHandle HandleOf(cudaStream_t stream);

  // The pool, made if there is none, with one user more.
  memory::PoolId Enter(c10::MempoolId_t id);
  void Begin(c10::MempoolId_t id, std::function<bool(cudaStream_t)> filter);
  void End(c10::MempoolId_t id);
  // One user less; the last one gives it up.
  void Leave(c10::MempoolId_t id);
  int Users(c10::MempoolId_t id);
  // Throws if nobody uses it.
  memory::PoolId IdOf(c10::MempoolId_t id);
  // PyTorch's name of a pool, also of one that was given up; {0, 0}: everybody's.
  c10::MempoolId_t NameOf(memory::PoolId pool);
  // What a filter threw in the calling thread's newest request; null: nothing.
  static std::exception_ptr TakeFilterError();

 private:
  struct Pool {
    memory::PoolId id = 0;
    int users = 0;
  };
  // Of a pool that has users.
  Pool& Existing(c10::MempoolId_t id);

  const std::shared_ptr<memory::DeviceMemory> memory_;
  std::mutex mutex_;
  std::map<cudaStream_t, hal::StreamHandle> streams_;
  std::map<c10::MempoolId_t, Pool> pools_;
  std::map<memory::PoolId, c10::MempoolId_t> names_;
};

class KeelAllocator final : public caching::CUDAAllocator {
 public:
  // Handing out.
  c10::DataPtr allocate(std::size_t size) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* destination, const void* source, std::size_t size) const override;
  void* raw_alloc(std::size_t size) override;
  void* raw_alloc_with_stream(std::size_t size, cudaStream_t stream) override;
  void raw_delete(void* pointer) override;
  void recordStream(const c10::DataPtr& pointer, c10::cuda::CUDAStream stream) override;
  void* getBaseAllocation(void* pointer, std::size_t* size) override;

  // Devices and limits.
  void init(int device_count) override;
  bool initialized() override { return device_count_ >= 0; }
  double getMemoryFraction(c10::DeviceIndex device);
  void setMemoryFraction(double fraction, c10::DeviceIndex device) override;
  void emptyCache(c10::MempoolId_t pool) override;
  // Off: what is asked for from now on comes from the driver and goes back there when it is freed,
  // counted by nobody and bounded by the device only. What was handed out before is freed as
  // before.
  void enable(bool wanted) override { enabled_.store(wanted); }
  bool isEnabled() const override { return enabled_.load(); }
  void enablePeerAccess(c10::DeviceIndex device, c10::DeviceIndex peer) override;
  cudaError_t memcpyAsync(void* destination, int destination_device, const void* source,
                          int source_device, std::size_t size, cudaStream_t stream,
                          bool peers) override;
  std::string name() override { return "keel"; }

  // Pools.
  void beginAllocateToPool(c10::DeviceIndex device, c10::MempoolId_t pool,
                           std::function<bool(cudaStream_t)> filter) override;
  void endAllocateToPool(c10::DeviceIndex device, c10::MempoolId_t pool) override;
  void releasePool(c10::DeviceIndex device, c10::MempoolId_t pool) override;
  int getPoolUseCount(c10::DeviceIndex device, c10::MempoolId_t pool) override;
  void createOrIncrefPool(c10::DeviceIndex device, c10::MempoolId_t pool,
                          std::shared_ptr<caching::CUDAAllocator> allocator);
  void createOrIncrefPool(c10::DeviceIndex device, c10::MempoolId_t pool,
                          caching::CUDAAllocator* allocator);
  // Every MemPool says at its end that it is not wanted; that it is, is not there.
  void setUseOnOOM(c10::DeviceIndex device, c10::MempoolId_t pool, bool wanted);
  void setUseOnOOM(c10::DeviceIndex device, c10::MempoolId_t pool) {
    setUseOnOOM(device, pool, true);
  }
  bool checkPoolLiveAllocations(c10::DeviceIndex device, c10::MempoolId_t pool,
                                const std::unordered_set<void*>& expected) override;
  // What inductor's graph trees (torch.compile, mode "reduce-overhead") share a pool by: which
  // blocks are live in it, and making it so again.
  std::shared_ptr<caching::AllocatorState> getCheckpointState(c10::DeviceIndex device,
                                                              c10::MempoolId_t pool) override;
  caching::CheckpointDelta setCheckpointPoolState(
      c10::DeviceIndex device, std::shared_ptr<caching::AllocatorState> state) override;

  // What it is doing.
  caching::DeviceStats getDeviceStats(c10::DeviceIndex device) override;
  void resetAccumulatedStats(c10::DeviceIndex device) override;
  void resetPeakStats(c10::DeviceIndex device) override;
  void cacheInfo(c10::DeviceIndex device, std::size_t* largest) override;
  std::vector<caching::StreamSegmentSize> getExpandableSegmentSizes(c10::DeviceIndex device);
  caching::SnapshotInfo snapshot(c10::MempoolId_t pool, bool traces);
  caching::SnapshotInfo snapshot(c10::MempoolId_t pool) { return snapshot(pool, true); }
  bool isHistoryEnabled() override { return contexts_.recording(); }
  void recordHistory(bool enabled, caching::CreateContextFn recorder, std::size_t capacity,
                     caching::RecordContext when, bool clear,
                     const std::vector<std::string>& skipped_actions);
  void recordHistory(bool enabled, caching::CreateContextFn recorder, std::size_t capacity,
                     caching::RecordContext when, bool clear) {
    recordHistory(enabled, recorder, capacity, when, clear, {});
  }
  void recordAnnotation(const std::vector<std::pair<std::string, std::string>>& metadata) override;
  void pushCompileContext(std::string& context) override;
  void popCompileContext() override;
  void setUserMetadata(const std::string& metadata);
  std::string getUserMetadata();
  bool supportsUserMetadata() { return true; }
  void attachOutOfMemoryObserver(caching::OutOfMemoryObserver observer) override;
  // Keel refuses nothing before it has tried.
  void attachOomRejectionObserver(caching::OutOfMemoryObserver) {}

  // What is not there.
  void attachAllocatorTraceTracker(caching::AllocatorTraceTracker tracker) override;
  caching::ShareableHandle shareIpcHandle(void* pointer) override;
  std::shared_ptr<void> getIpcDevPtr(std::string handle) override;

 private:
  using Annotation = decltype(caching::SnapshotInfo::external_annotations)::value_type;

  // Opens it at the first call.
  Device& Get(c10::DeviceIndex index);
  // Null for one that nobody used.
  Device* Find(c10::DeviceIndex index) const { return devices_.at(index).load(); }
  void* Allocate(c10::DeviceIndex index, std::size_t size, cudaStream_t stream);
  // Throws.
  [[noreturn]] void Fail(c10::DeviceIndex index, std::size_t size, const Status& status);
  // The events of a call that is no allocation get the program's place, while that is recorded.
  std::optional<telemetry::ScopedStack> NameEvents();
  void Report(c10::DeviceIndex index, void* pointer, std::int64_t size);
  // Both while the cache is switched off, or was.
  void* AllocateUncached(c10::DeviceIndex index, std::size_t size);
  // Gives it back to the driver; nothing: it is not of that kind.
  std::optional<Status> FreeUncached(void* pointer);
  bool IsUncached(void* pointer);
  Status Free(void* pointer);
  // Where the block is; for one that is nowhere, some device that is in use. -1: there is none.
  c10::DeviceIndex DeviceOf(DeviceAddress block) const;
  // What tensors are freed by. One for all devices, whose addresses do not overlap: PyTorch asks
  // whether a tensor's deleter is the allocator's.
  static void Delete(void* pointer);
  void AddSegments(c10::DeviceIndex index, c10::MempoolId_t pool, caching::SnapshotInfo& info);
  void AddTraces(caching::SnapshotInfo& info);
  // As PyTorch has it: an event that the next snapshot shows.
  void RecordSnapshot();

  static constexpr std::size_t kMaxDevices = 128;
  int device_count_ = -1;  // before init
  std::mutex mutex_;       // opening, observers, annotations, what is not cached
  std::array<std::atomic<Device*>, kMaxDevices> devices_{};
  std::vector<caching::OutOfMemoryObserver> observers_;
  std::deque<Annotation> annotations_;  // as many as the history has events at most
  std::atomic<bool> enabled_{true};
  std::atomic<bool> has_uncached_{false};  // whether there ever were any
  std::unordered_map<void*, hal::PlainMemory> uncached_;
  Contexts contexts_;
};

// The one of the process, which lives as long as that.
const std::shared_ptr<KeelAllocator>& TheAllocator();

// In a child that was forked after TheAllocator: nothing here is the child's, and a lock may be one
// that nobody will release.
bool IsForked();

void* PointerTo(DeviceAddress address);

// Throws what PyTorch throws.
void Check(const Status& status);

}  // namespace keel::torch
