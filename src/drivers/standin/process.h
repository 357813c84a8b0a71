// Process: the state of one stand-in library. One object, never destroyed: a driver library lives
// until the process ends.
//
// One lock guards the tables, and no call of the simulated device is made under it: those may wait.
// Two threads that give the same thing back both ask the simulated device, which refuses the
// second.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "drivers/standin/standin.h"
#include "keel/base/mutex.h"
#include "keel/base/status.h"
#include "keel/drivers/sim.h"
#include "keel/hal/device.h"

namespace keel::standin {

// The primary context of one device. Its address is the handle, and stays.
struct Context {
  explicit Context(int number) : ordinal(number) {}
  const int ordinal;
  std::atomic<bool> lost{false};
  // The rest is guarded by Process::mutex.
  int retains = 0;
  std::shared_ptr<hal::Device> device;  // null: not open
  std::set<int> peers;                  // whose memory it may use
};

// What stands behind a handle. The fields that change are guarded by Process::mutex.
struct StreamObject {
  Context* context = nullptr;
  hal::StreamHandle handle;
  bool blocking = false;  // waits for the legacy default stream, and it for this
  struct Begun {
    std::thread::id thread;
    hal::CaptureMode mode = hal::CaptureMode::kGlobal;
  };
  std::optional<Begun> begun;  // a capture that began here
  std::uint64_t capture_id = 0;
  std::vector<void*> frontier;  // what GetCaptureInfo returned last
};
struct EventObject {
  Context* context = nullptr;
  hal::EventHandle handle;
  bool timing = false;
  bool recorded = false;
  bool captured = false;  // recorded last in a capture
};
struct KernelObject {
  Context* context = nullptr;
  std::string name;
  std::vector<std::uint32_t> sizes;
  hal::KernelHandle handle;  // null: nothing runs it
};
struct ModuleObject {
  Context* context = nullptr;
  hal::ModuleHandle handle;
  std::map<std::string, void*, std::less<>> kernels;
};
struct GraphObject {
  Context* context = nullptr;  // null: not bound yet, and empty
  hal::GraphHandle handle;
  std::set<void*> nodes;  // those that somebody has heard of
};
struct ExecObject {
  Context* context = nullptr;
  hal::ExecHandle handle;
  std::vector<std::size_t> kinds;  // of its nodes, in order
};
struct MemoryObject {
  Context* context = nullptr;  // of the device that it is on
  hal::MemoryHandle handle;
  std::size_t size = 0;
};
struct Region {
  std::size_t size = 0;
  Context* context = nullptr;  // whose: plain and pinned memory, the memory behind a mapping
  bool allocated = false;      // pinned memory: allocated, not registered
};
using Regions = std::map<Address, Region>;

// The region that holds an address, or the end.
Regions::const_iterator FindRegion(const Regions& regions, Address address);

template <class T>
using Table = std::map<void*, std::shared_ptr<T>>;

// What the thread has of this library.
struct Thread {
  Thread();
  Context* current = nullptr;
};
Thread& ThisThread();

class Process {
 public:
  static Process& Get();

  std::optional<int> Initialize() KEEL_EXCLUDES(mutex);
  bool initialized() const;
  int device_count() const { return static_cast<int>(contexts.size()); }
  const sim::SimConfig& config() const { return config_; }

  // kInvalidDevice.
  Cause FindDevice(int ordinal, Context** context) const;
  // kInvalidContext.
  Cause FindContext(void* handle, Context** context) const;
  // The device of a context, opened if need be. kLost.
  Cause Open(Context& context, std::shared_ptr<hal::Device>* device) KEEL_EXCLUDES(mutex);
  // The thread's current context and its device. kInvalidContext, kContextDestroyed, kLost.
  Cause Current(Context** context, std::shared_ptr<hal::Device>* device) KEEL_EXCLUDES(mutex);
  // One whose device works: for virtual memory, whose addresses all devices share.
  Cause Any(Context** context, std::shared_ptr<hal::Device>* device) KEEL_EXCLUDES(mutex);
  Cause Retain(Context& context) KEEL_EXCLUDES(mutex);
  Cause Release(Context& context) KEEL_EXCLUDES(mutex);
  // Closes devices that nobody retains, once no virtual memory is left that may be theirs.
  void CloseIdle() KEEL_EXCLUDES(mutex);

  // What the status of a call on the context's device means. `precondition`: a refusal.
  static Cause Judge(Context& context, const Status& status, Cause precondition);

  // The object behind a handle, if its context works: kInvalidHandle, kLost.
  template <class T>
  Cause Find(const Table<T>& table, void* handle, std::shared_ptr<T>* object) {
    MutexLock lock(mutex);
    const auto found = table.find(handle);
    if (found == table.end()) return Cause::kInvalidHandle;
    *object = found->second;
    Context* const context = (*object)->context;
    return context != nullptr && context->lost ? Cause::kLost : Cause::kOk;
  }
  // The same, and the device of its context, which the object must have.
  template <class T>
  Cause Find(const Table<T>& table, void* handle, std::shared_ptr<T>* object,
             std::shared_ptr<hal::Device>* device) {
    const Cause cause = Find(table, handle, object);
    return cause == Cause::kOk ? Open(*(*object)->context, device) : cause;
  }
  // A handle that was never used before.
  void* NewHandle() { return reinterpret_cast<void*>(next_handle_.fetch_add(16)); }
  template <class T>
  void* Insert(Table<T>& table, std::shared_ptr<T> object) {
    void* const handle = NewHandle();
    MutexLock lock(mutex);
    table.emplace(handle, std::move(object));
    return handle;
  }
  template <class T>
  void Erase(Table<T>& table, void* handle) {
    MutexLock lock(mutex);
    table.erase(handle);
  }

  std::string DescribeAlive(int* count) KEEL_EXCLUDES(mutex);

  // Tests' wishes.
  std::optional<int> TakeFailure(const char* entry) KEEL_EXCLUDES(failure_mutex_);
  void SetFailure(const char* entry, int skip, int code) KEEL_EXCLUDES(failure_mutex_);
  const char* failed() const { return failed_.load(); }
  std::uint64_t calls() const { return calls_.load(); }
  std::set<std::string> called() KEEL_EXCLUDES(failure_mutex_);

  std::vector<std::unique_ptr<Context>> contexts;  // by device; written by Initialize only

  mutable Mutex mutex;
  Table<StreamObject> streams;
  // Default streams, by the simulated device's handle. They are nobody's to destroy.
  std::map<std::uint64_t, std::shared_ptr<StreamObject>> default_streams KEEL_GUARDED_BY(mutex);
  Table<EventObject> events;
  Table<ModuleObject> modules;
  Table<KernelObject> kernels;
  Table<GraphObject> graphs;
  Table<ExecObject> execs;
  Table<MemoryObject> memories;
  std::map<void*, void*> graph_of_node KEEL_GUARDED_BY(mutex);  // node, graph
  // What was asked of each node, which the simulated device does not tell. Arguments of launches
  // are gone.
  std::map<void*, Work> node_work KEEL_GUARDED_BY(mutex);
  int open_captures KEEL_GUARDED_BY(mutex) = 0;
  Regions plain KEEL_GUARDED_BY(mutex);
  Regions reservations KEEL_GUARDED_BY(mutex);
  Regions mappings KEEL_GUARDED_BY(mutex);
  Regions pinned KEEL_GUARDED_BY(mutex);

 private:
  Process() = default;
  void DropObjectsOf(Context& context) KEEL_EXCLUDES(mutex);

  // Opening and closing of devices, one at a time. Taken before `mutex`.
  Mutex lifecycle_;
  std::atomic<bool> initialized_{false};
  std::uint64_t fork_generation_ = 0;
  sim::SimConfig config_;
  std::unique_ptr<hal::Driver> driver_;
  std::atomic<std::uint64_t> next_handle_{0x5a0000000000};

  std::atomic<std::uint64_t> calls_{0};
  std::atomic<const char*> failed_{nullptr};
  Mutex failure_mutex_;
  std::optional<std::string> fail_entry_ KEEL_GUARDED_BY(failure_mutex_);
  int fail_skip_ KEEL_GUARDED_BY(failure_mutex_) = -1;
  std::set<std::string> called_ KEEL_GUARDED_BY(failure_mutex_);
  int fail_code_ KEEL_GUARDED_BY(failure_mutex_) = 0;
};

// Remembers work that became a node.
void RememberWork(void* node, const Work& work);

// The name of the set of kernels, registered with the simulated device by Initialize.
inline constexpr std::string_view kKernelSet = "standin";
Status RegisterStandinKernels();
// Whether a kernel with this name and these parameters has a body.
bool HasBody(const KernelEntry& entry);

}  // namespace keel::standin
