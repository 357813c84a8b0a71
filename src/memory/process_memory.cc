#include "keel/memory/process_memory.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>

#include "base/fork.h"
#include "keel/base/log.h"
#include "keel/base/mutex.h"

namespace keel::memory {
namespace {

// For the caller, not for staging. In this order: what a cache pins in between is seen.
bool IsTheirsPinned(hal::Device& device, const void* pointer, Bytes size) {
  return device.GetHostAddress(pointer).ok() && !IsLentByACache(pointer, size);
}

Status NotTheirs(std::string_view what) {
  return InvalidArgument(fmt::format(
      "the {} is pinned only while copies that wait need it (staging_pin_limit); use memory of "
      "HostAllocator, or a copy that waits",
      what));
}

}  // namespace

// --- One device -------------------------------------------------------------------------------

Result<std::shared_ptr<DeviceMemory>> DeviceMemory::Create(std::shared_ptr<hal::Device> device,
                                                           const AllocatorConfig& config) {
  KEEL_ASSIGN(std::unique_ptr<DeviceAllocator> allocator,
              DeviceAllocator::Create(device, {.config = config}));
  return std::shared_ptr<DeviceMemory>(
      new DeviceMemory(std::move(device), std::move(allocator), config));
}

DeviceMemory::DeviceMemory(std::shared_ptr<hal::Device> device,
                           std::unique_ptr<DeviceAllocator> allocator,
                           const AllocatorConfig& config)
    : device_(std::move(device)),
      events_(device_),
      allocator_(std::move(allocator)),
      host_(std::make_shared<HostAllocator>(device_, HostAllocatorOptions::From(config))),
      staging_(host_, config) {}

hal::DeviceName DeviceMemory::name() const {
  return {.driver = device_->info().driver, .ordinal = device_->info().ordinal};
}

// Between the device and pinned memory, until it is done.
Status DeviceMemory::Transfer(hal::StreamHandle stream, const hal::Copy& copy, Deadline deadline) {
  KEEL_ASSIGN(const hal::CaptureState state, device_->GetCaptureState(stream));
  if (state != hal::CaptureState::kNone) {
    return FailedPrecondition(
        "the stream is being captured and cannot be waited for; enqueue the copy instead");
  }
  KEEL_TRY(device_->EnqueueCopy(stream, copy));
  Status status = device_->SynchronizeStream(stream, deadline);
  if (!status.ok() && device_->Health().ok()) {
    // The memory is the caller's: leave when nothing uses it.
    const Status idle = device_->SynchronizeStream(stream, Deadline::Never());
    if (!idle.ok()) status = idle;
  }
  return status;
}

Status DeviceMemory::CopyToDevice(hal::StreamHandle stream, DeviceAddress destination,
                                  const void* source, Bytes size, Deadline deadline) {
  if (size.empty()) return OkStatus();
  if (!IsTheirsPinned(*device_, source, size)) {
    return staging_.CopyToDevice(stream, destination, source, size, deadline);
  }
  return Transfer(stream,
                  {.destination = hal::Location::On(device_->id(), destination),
                   .source = hal::Location::Host(source),
                   .size = size},
                  deadline);
}

Status DeviceMemory::CopyToHost(hal::StreamHandle stream, void* destination, DeviceAddress source,
                                Bytes size, Deadline deadline) {
  if (size.empty()) return OkStatus();
  if (!IsTheirsPinned(*device_, destination, size)) {
    return staging_.CopyToHost(stream, destination, source, size, deadline);
  }
  return Transfer(stream,
                  {.destination = hal::Location::Host(destination),
                   .source = hal::Location::On(device_->id(), source),
                   .size = size},
                  deadline);
}

Status DeviceMemory::EnqueueCopyToDevice(hal::StreamHandle stream, DeviceAddress destination,
                                         const void* source, Bytes size) {
  if (size.empty()) return OkStatus();
  KEEL_TRY(device_->GetHostAddress(source).status().Annotate("the source is not pinned"));
  if (IsLentByACache(source, size)) return NotTheirs("source");
  return device_->EnqueueCopy(stream, {.destination = hal::Location::On(device_->id(), destination),
                                       .source = hal::Location::Host(source),
                                       .size = size});
}

Status DeviceMemory::EnqueueCopyToHost(hal::StreamHandle stream, void* destination,
                                       DeviceAddress source, Bytes size) {
  if (size.empty()) return OkStatus();
  KEEL_TRY(device_->GetHostAddress(destination).status().Annotate("the destination is not pinned"));
  if (IsLentByACache(destination, size)) return NotTheirs("destination");
  return device_->EnqueueCopy(stream, {.destination = hal::Location::Host(destination),
                                       .source = hal::Location::On(device_->id(), source),
                                       .size = size});
}

// --- All of them ------------------------------------------------------------------------------

// A child that may use devices, because none was used before the fork, begins with nothing.
struct ProcessMemory::Sets {
  struct Own {
    Result<std::shared_ptr<DeviceMemory>> MakeLocked(const Key& key, const AllocatorConfig& config)
        KEEL_REQUIRES(mutex);

    Mutex mutex;
    std::map<Key, std::shared_ptr<DeviceMemory>> all KEEL_GUARDED_BY(mutex);
  };
  Sets() = default;
  ~Sets() { own.End(); }
  Sets(const Sets&) = delete;
  Sets& operator=(const Sets&) = delete;

  PerProcess<Own> own;
};

Result<std::shared_ptr<DeviceMemory>> ProcessMemory::Sets::Own::MakeLocked(
    const Key& key, const AllocatorConfig& config) {
  KEEL_ASSIGN(std::shared_ptr<hal::Device> device, key.driver->Open(key.ordinal));
  KEEL_ASSIGN(std::shared_ptr<DeviceMemory> made, DeviceMemory::Create(device, config));
  for (const auto& [other_key, other] : all) {
    if (other_key.driver != key.driver) continue;
    // Copies between devices work without it: a reason to warn, not to have no memory.
    for (const Status& status :
         {made->allocator().AddPeer(other->device()), other->allocator().AddPeer(device)}) {
      if (!status.ok() && status.code() != StatusCode::kDeviceLost) {
        Log(LogLevel::kWarn,
            fmt::format("devices {} and {} do not share memory: {}", made->name().ToString(),
                        other->name().ToString(), status.ToString()));
      }
    }
  }
  all.emplace(key, made);
  return made;
}

ProcessMemory& ProcessMemory::Global() {
  static auto* const memory =
      new ProcessMemory(hal::Registry::Global(), AllocatorConfig::FromEnvironment());
  return *memory;
}

ProcessMemory::ProcessMemory(hal::Registry& registry, Result<AllocatorConfig> config)
    : registry_(registry), config_(std::move(config)), sets_(std::make_unique<Sets>()) {}

ProcessMemory::~ProcessMemory() = default;

Status ProcessMemory::Here() const {
  const std::uint64_t used = used_.load(std::memory_order_acquire);
  if (used == 0 || used == ForkGeneration() + 1) return OkStatus();
  return FailedPrecondition(
      "this process was forked from one that uses device memory, and cannot; start it with exec "
      "(in Python: multiprocessing's method \"spawn\")");
}

Result<ProcessMemory::Key> ProcessMemory::Resolve(const hal::DeviceName& name) const {
  Key key{.ordinal = name.ordinal};
  KEEL_ASSIGN(key.driver, name.driver.empty() ? registry_.Default() : registry_.Find(name.driver));
  Result<std::vector<hal::DeviceInfo>> devices = key.driver->Enumerate();
  const std::string full = fmt::format("{}:{}", key.driver->name(), name.ordinal);
  if (!devices.ok()) return std::move(devices).status().Annotate("device " + full);
  std::string known;
  for (const hal::DeviceInfo& info : *devices) {
    if (info.ordinal == name.ordinal) return key;
    known += fmt::format("{}{}:{}", known.empty() ? "" : ", ", key.driver->name(), info.ordinal);
  }
  return NotFound(
      fmt::format("there is no device {}; there are: {}", full, known.empty() ? "none" : known));
}

Result<hal::DeviceName> ProcessMemory::FullName(const hal::DeviceName& name) const {
  KEEL_ASSIGN(const Key key, Resolve(name));
  return hal::DeviceName{.driver = std::string(key.driver->name()), .ordinal = key.ordinal};
}

Result<std::shared_ptr<DeviceMemory>> ProcessMemory::For(const hal::DeviceName& name) {
  KEEL_TRY(Here());
  KEEL_TRY(config_.status());
  KEEL_ASSIGN(const Key key, Resolve(name));
  used_.store(ForkGeneration() + 1, std::memory_order_release);
  Sets::Own& own = sets_->own.Get();
  const MutexLock lock(own.mutex);
  used_.store(ForkGeneration() + 1, std::memory_order_release);  // after a Shutdown meanwhile
  if (const auto known = own.all.find(key); known != own.all.end()) return known->second;
  Result<std::shared_ptr<DeviceMemory>> made = own.MakeLocked(key, *config_);
  if (!made.ok()) {
    return std::move(made).status().Annotate(
        fmt::format("device {}:{}", key.driver->name(), key.ordinal));
  }
  return made;
}

Result<std::vector<std::shared_ptr<DeviceMemory>>> ProcessMemory::List() const {
  KEEL_TRY(Here());
  std::vector<std::shared_ptr<DeviceMemory>> list;
  if (!used()) return list;
  Sets::Own& own = sets_->own.Get();
  const MutexLock lock(own.mutex);
  list.reserve(own.all.size());
  for (const auto& [key, set] : own.all) list.push_back(set);
  return list;
}

Status ProcessMemory::Forget(const hal::DeviceName& name) {
  KEEL_TRY(Here());
  KEEL_ASSIGN(const Key key, Resolve(name));
  Status none = NotFound(
      fmt::format("the process has no memory of device {}:{}", key.driver->name(), key.ordinal));
  if (!used()) return none;
  std::shared_ptr<DeviceMemory> forgotten;  // ends after the lock
  Sets::Own& own = sets_->own.Get();
  const MutexLock lock(own.mutex);
  const auto known = own.all.find(key);
  if (known == own.all.end()) return none;
  forgotten = std::move(known->second);
  own.all.erase(known);
  for (const auto& [other_key, other] : own.all) {
    other->allocator().RemovePeer(forgotten->device()->id());
  }
  return OkStatus();
}

Status ProcessMemory::Shutdown() {
  KEEL_TRY(Here());
  if (!used()) return OkStatus();
  std::map<Key, std::shared_ptr<DeviceMemory>> sets;  // end after the lock
  Sets::Own& own = sets_->own.Get();
  const MutexLock lock(own.mutex);
  sets.swap(own.all);
  for (const auto& [key, set] : sets) {
    for (const auto& [other_key, other] : sets) {
      other->allocator().RemovePeer(set->device()->id());
    }
  }
  used_.store(0, std::memory_order_release);
  return OkStatus();
}

}  // namespace keel::memory
