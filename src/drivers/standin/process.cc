#include "drivers/standin/process.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/fork.h"
#include "hal/host_call_scope.h"
#include "keel/base/config_string.h"
#include "keel/hal/capture_mode.h"
#include "keel/hal/driver.h"

namespace keel::standin {
namespace {

struct Config {
  sim::SimConfig sim;
  bool no_devices = false;
  std::optional<int> init_code;
};

// The stand-in's own keys are read here, all others are the simulated device's.
Result<Config> ReadConfig(std::string_view text) {
  constexpr std::string_view kSource = "KEEL_STANDIN";
  KEEL_ASSIGN(const ConfigString parsed, ConfigString::Parse(kSource, text));
  Config config;
  std::string rest;
  for (const ConfigString::Entry& entry : parsed.entries()) {
    if (entry.key == "init") {
      config.init_code = std::atoi(entry.value.c_str());
    } else if (entry.key == "devices" && entry.value == "0") {
      config.no_devices = true;
    } else if (entry.key == "unified") {
      return InvalidArgument("KEEL_STANDIN: a driver library has one address space: no 'unified'");
    } else {
      rest += fmt::format("{}{}:{}", rest.empty() ? "" : ",", entry.key, entry.value);
    }
  }
  KEEL_ASSIGN(config.sim, sim::ParseSimConfig(kSource, rest));
  return config;
}

// A stand-in that cannot do what the test asked for must not look like one that can.
[[noreturn]] void Refuse(const Status& status) {
  std::fprintf(stderr, "stand-in driver library: %s\n", status.ToString().c_str());
  std::abort();
}

}  // namespace

// A real driver library's threads obey every capture until they say otherwise; the simulated
// device's own copy of the mode, which only this library uses, is that mode.
Thread::Thread() { hal::ExchangeThreadCaptureMode(hal::CaptureMode::kGlobal); }

Thread& ThisThread() {
  thread_local Thread thread;
  return thread;
}

Process& Process::Get() {
  static Process* const process = new Process();
  return *process;
}

std::optional<int> Process::Initialize() {
  if (initialized_) return std::nullopt;
  MutexLock lock(lifecycle_);
  if (initialized_) return std::nullopt;
  const char* text = std::getenv("KEEL_STANDIN");
  const Result<Config> config = ReadConfig(text == nullptr ? "" : text);
  if (!config.ok()) Refuse(config.status());
  if (config->init_code) return config->init_code;
  config_ = config->sim;
  if (!config->no_devices) {
    auto driver = sim::CreateSimDriver(config_);
    if (!driver.ok()) Refuse(driver.status());
    driver_ = *std::move(driver);
    for (int i = 0; i < config_.devices; ++i) contexts.push_back(std::make_unique<Context>(i));
  }
  if (const Status status = RegisterStandinKernels(); !status.ok()) Refuse(status);
  fork_generation_ = ForkGeneration();
  initialized_ = true;
  return std::nullopt;
}

bool Process::initialized() const {
  return initialized_.load() && fork_generation_ == ForkGeneration();
}

// --- Contexts ------------------------------------------------------------------------------------

Cause Process::FindDevice(int ordinal, Context** context) const {
  if (ordinal < 0 || ordinal >= device_count()) return Cause::kInvalidDevice;
  *context = contexts[static_cast<std::size_t>(ordinal)].get();
  return Cause::kOk;
}

Cause Process::FindContext(void* handle, Context** context) const {
  for (const std::unique_ptr<Context>& one : contexts) {
    if (one.get() != handle) continue;
    *context = one.get();
    return Cause::kOk;
  }
  return Cause::kInvalidContext;
}

Cause Process::Open(Context& context, std::shared_ptr<hal::Device>* device) {
  if (context.lost) return Cause::kLost;
  {
    MutexLock lock(mutex);
    *device = context.device;
    if (*device != nullptr) return Cause::kOk;
  }
  MutexLock lifecycle(lifecycle_);
  auto opened = driver_->Open(context.ordinal);
  if (!opened.ok()) return Judge(context, opened.status(), Cause::kNotSupported);
  *device = *std::move(opened);
  MutexLock lock(mutex);
  context.device = *device;
  return Cause::kOk;
}

Cause Process::Current(Context** context, std::shared_ptr<hal::Device>* device) {
  *context = ThisThread().current;
  if (*context == nullptr) return Cause::kInvalidContext;
  if ((*context)->lost) return Cause::kLost;
  MutexLock lock(mutex);
  if ((*context)->retains == 0) return Cause::kContextDestroyed;
  *device = (*context)->device;
  return Cause::kOk;
}

Cause Process::Any(Context** context, std::shared_ptr<hal::Device>* device) {
  if (Current(context, device) == Cause::kOk) return Cause::kOk;
  if (contexts.empty()) return Cause::kNoDevice;
  Cause cause = Cause::kOk;
  // First those that are open anyway.
  for (const bool opening : {false, true}) {
    for (const std::unique_ptr<Context>& one : contexts) {
      if (!opening) {
        MutexLock lock(mutex);
        if (one->device == nullptr) continue;
      }
      *context = one.get();
      cause = Open(*one, device);
      if (cause == Cause::kOk) return cause;
    }
  }
  return cause;
}

Cause Process::Retain(Context& context) {
  std::shared_ptr<hal::Device> device;
  const Cause cause = Open(context, &device);
  if (cause != Cause::kOk) return cause;
  MutexLock lock(mutex);
  context.device = std::move(device);  // again, should it have been closed in between
  ++context.retains;
  return Cause::kOk;
}

Cause Process::Release(Context& context) {
  {
    MutexLock lock(mutex);
    if (context.retains == 0) return Cause::kInvalidContext;
    if (--context.retains > 0) return Cause::kOk;
  }
  DropObjectsOf(context);
  CloseIdle();
  return Cause::kOk;
}

void Process::DropObjectsOf(Context& context) {
  const hal::ScopedCaptureMode relaxed(hal::CaptureMode::kRelaxed);
  std::shared_ptr<hal::Device> device;
  std::vector<hal::StreamHandle> gone_streams;
  std::vector<hal::EventHandle> gone_events;
  std::vector<hal::ModuleHandle> gone_modules;
  std::vector<hal::GraphHandle> gone_graphs;
  std::vector<hal::ExecHandle> gone_execs;
  std::vector<Address> gone_plain;
  std::vector<std::pair<Address, bool>> gone_pinned;
  std::set<int> gone_peers;
  {
    MutexLock lock(mutex);
    device = context.device;
    const auto take = [&](auto& table, auto* handles) {
      std::erase_if(table, [&](const auto& entry) {
        if (entry.second->context != &context) return false;
        if (handles != nullptr) handles->push_back(entry.second->handle);
        return true;
      });
    };
    take(streams, &gone_streams);
    take(default_streams, static_cast<std::vector<hal::StreamHandle>*>(nullptr));
    take(events, &gone_events);
    take(modules, &gone_modules);
    take(kernels, static_cast<std::vector<hal::KernelHandle>*>(nullptr));
    take(graphs, &gone_graphs);
    take(execs, &gone_execs);
    std::erase_if(graph_of_node, [&](const auto& entry) { return !graphs.contains(entry.second); });
    std::erase_if(plain, [&](const auto& entry) {
      if (entry.second.context != &context) return false;
      gone_plain.push_back(entry.first);
      return true;
    });
    std::erase_if(pinned, [&](const auto& entry) {
      if (entry.second.context != &context) return false;
      gone_pinned.emplace_back(entry.first, entry.second.allocated);
      return true;
    });
    gone_peers = std::exchange(context.peers, {});
    for (const std::unique_ptr<Context>& other : contexts) other->peers.erase(context.ordinal);
  }
  // Nobody is left to be told of a failure: a stream that captures goes when the device closes.
  for (const auto handle : gone_execs) (void)device->DestroyExec(handle);
  for (const auto handle : gone_graphs) {
    if (handle) (void)device->DestroyGraph(handle);
  }
  for (const auto handle : gone_modules) (void)device->UnloadModule(handle);
  for (const auto handle : gone_events) (void)device->DestroyEvent(handle);
  for (const auto handle : gone_streams) (void)device->DestroyStream(handle);
  for (const Address address : gone_plain) (void)device->FreePlain(DeviceAddress(address));
  for (const auto& [address, allocated] : gone_pinned) {
    void* const pointer = reinterpret_cast<void*>(address);
    (void)(allocated ? device->FreeHost(pointer) : device->UnregisterHost(pointer));
  }
  for (const int peer : gone_peers) {
    std::shared_ptr<hal::Device> other;
    if (Open(*contexts[static_cast<std::size_t>(peer)], &other) == Cause::kOk) {
      (void)device->DisablePeerAccess(other->id());
    }
  }
}

void Process::CloseIdle() {
  MutexLock lifecycle(lifecycle_);
  std::vector<std::shared_ptr<hal::Device>> closing;
  {
    MutexLock lock(mutex);
    const auto any = [this](auto is) { return std::any_of(contexts.begin(), contexts.end(), is); };
    const bool retained = any([](const auto& context) { return context->retains > 0; });
    // Nobody can give back what was there when a device was lost.
    if (!retained && any([](const auto& context) { return context->lost.load(); })) {
      memories.clear();
      reservations.clear();
      mappings.clear();
    }
    if (!memories.empty() || !reservations.empty()) return;
    for (const std::unique_ptr<Context>& context : contexts) {
      if (context->retains == 0 && context->device != nullptr) {
        closing.push_back(std::exchange(context->device, nullptr));
      }
    }
  }
}

Cause Process::Judge(Context& context, const Status& status, Cause precondition) {
  switch (status.code()) {
    case StatusCode::kOk:
      return Cause::kOk;
    case StatusCode::kDeviceLost:
      context.lost = true;
      return Cause::kLost;
    case StatusCode::kInvalidArgument:
      return Cause::kInvalidValue;
    case StatusCode::kResourceExhausted:
      return Cause::kOutOfMemory;
    case StatusCode::kFailedPrecondition:
      return precondition;
    case StatusCode::kNotFound:
      return Cause::kNotFound;
    case StatusCode::kAlreadyExists:
      return Cause::kHostAlreadyRegistered;
    case StatusCode::kUnimplemented:
      return Cause::kNotSupported;
    default:
      return Cause::kUnknown;
  }
}

// --- Tests' wishes -------------------------------------------------------------------------------

std::optional<int> Process::TakeFailure(const char* entry) {
  calls_.fetch_add(1);
  MutexLock lock(failure_mutex_);
  called_.insert(entry);
  if (fail_skip_ < 0 || (fail_entry_ && *fail_entry_ != entry)) return std::nullopt;
  if (fail_skip_-- > 0) return std::nullopt;
  failed_ = entry;
  return fail_code_;
}

void Process::SetFailure(const char* entry, int skip, int code) {
  MutexLock lock(failure_mutex_);
  fail_entry_ = entry == nullptr ? std::nullopt : std::optional<std::string>(entry);
  fail_skip_ = skip;
  fail_code_ = code;
  failed_ = nullptr;
}

std::set<std::string> Process::called() {
  MutexLock lock(failure_mutex_);
  return called_;
}

std::string Process::DescribeAlive(int* count) {
  MutexLock lock(mutex);
  std::string text;
  *count = 0;
  const auto add = [&](std::string_view what, std::size_t number) {
    if (number == 0) return;
    *count += static_cast<int>(number);
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", number, what);
  };
  std::size_t retains = 0;
  std::size_t peers = 0;
  for (const std::unique_ptr<Context>& context : contexts) {
    retains += static_cast<std::size_t>(context->retains);
    peers += context->peers.size();
  }
  add("retained contexts", retains);
  add("enabled peers", peers);
  add("plain memories", plain.size());
  add("physical memories", memories.size());
  add("reservations", reservations.size());
  add("mappings", mappings.size());
  add("pinned ranges", pinned.size());
  add("streams", streams.size());
  add("events", events.size());
  add("modules", modules.size());
  add("graphs", graphs.size());
  add("instantiated graphs", execs.size());
  return text;
}

Regions::const_iterator FindRegion(const Regions& regions, Address address) {
  auto after = regions.upper_bound(address);
  if (after == regions.begin()) return regions.end();
  --after;
  return address - after->first < after->second.size ? after : regions.end();
}

// --- What vendors' files call --------------------------------------------------------------------

Gate Enter(const char* entry, Needs needs) {
  Process& process = Process::Get();
  // Before anything else: in a forked child locks may be held for ever.
  const bool initialized = process.initialized();
  if (needs == Needs::kInitialized && !initialized) return {std::nullopt, Cause::kNotInitialized};
  if (const std::optional<int> code = process.TakeFailure(entry)) return {code, Cause::kOk};
  ThisThread();  // has a capture mode from its first call on
  if (hal::InHostCall()) return {std::nullopt, Cause::kNotPermitted};
  return {};
}

Gate Initialize() {
  Process& process = Process::Get();
  if (const std::optional<int> code = process.Initialize()) return {code, Cause::kOk};
  return {std::nullopt, process.initialized() ? Cause::kOk : Cause::kNotInitialized};
}

int DeviceCount() { return Process::Get().device_count(); }

Cause DescribeDevice(int device, hal::DeviceInfo* info) {
  Context* context = nullptr;
  const Cause cause = Process::Get().FindDevice(device, &context);
  if (cause != Cause::kOk) return cause;
  info->ordinal = device;
  info->name = fmt::format("Keel stand-in accelerator {}", device);
  info->memory = Process::Get().config().memory;
  return Cause::kOk;
}

Cause DeviceCapabilities(int device, hal::Capabilities* capabilities) {
  Context* context = nullptr;
  std::shared_ptr<hal::Device> opened;
  Cause cause = Process::Get().FindDevice(device, &context);
  if (cause == Cause::kOk) cause = Process::Get().Open(*context, &opened);
  if (cause == Cause::kOk) *capabilities = opened->capabilities();
  return cause;
}

Cause RetainPrimary(void** context, int device) {
  Context* found = nullptr;
  Cause cause = Process::Get().FindDevice(device, &found);
  if (cause == Cause::kOk) cause = Process::Get().Retain(*found);
  if (cause == Cause::kOk) *context = found;
  return cause;
}

Cause ReleasePrimary(int device) {
  Context* found = nullptr;
  const Cause cause = Process::Get().FindDevice(device, &found);
  return cause == Cause::kOk ? Process::Get().Release(*found) : cause;
}

Cause GetCurrent(void** context) {
  *context = ThisThread().current;
  return Cause::kOk;
}

Cause SetCurrent(void* context) {
  Context* found = nullptr;
  if (context != nullptr) {
    const Cause cause = Process::Get().FindContext(context, &found);
    if (cause != Cause::kOk) return cause;
  }
  ThisThread().current = found;
  return Cause::kOk;
}

Cause DeviceOf(void* context, int* device) {
  Context* found = nullptr;
  const Cause cause = Process::Get().FindContext(context, &found);
  if (cause == Cause::kOk) *device = found->ordinal;
  return cause;
}

Cause SynchronizeContext() {
  Context* context = nullptr;
  std::shared_ptr<hal::Device> device;
  const Cause cause = Process::Get().Current(&context, &device);
  if (cause != Cause::kOk) return cause;
  return Process::Judge(*context, device->Synchronize(Deadline::Never()),
                        Cause::kCaptureUnsupported);
}

}  // namespace keel::standin

void keel_standin_fail(const char* entry, int skip, int code) {
  keel::standin::Process::Get().SetFailure(entry, skip, code);
}
const char* keel_standin_failed() { return keel::standin::Process::Get().failed(); }
unsigned long keel_standin_calls() { return keel::standin::Process::Get().calls(); }
const char* keel_standin_called() {
  thread_local std::string text;
  text.clear();
  for (const std::string& entry : keel::standin::Process::Get().called()) text += entry + " ";
  return text.c_str();
}
int keel_standin_alive() {
  int count = 0;
  keel::standin::Process::Get().DescribeAlive(&count);
  return count;
}
const char* keel_standin_describe_alive() {
  thread_local std::string text;
  int count = 0;
  text = keel::standin::Process::Get().DescribeAlive(&count);
  return text.c_str();
}
