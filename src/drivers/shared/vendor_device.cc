#include "drivers/shared/vendor_device.h"

#include <fmt/format.h>

#include "drivers/shared/current_scope.h"
#include "hal/host_call_scope.h"
#include "keel/base/log.h"
#include "keel/hal/driver.h"

namespace keel::vendor {

void OpenDevices::Add(hal::DeviceId id, Entry entry) {
  MutexLock lock(mutex_);
  devices_.emplace(id, entry);
}

void OpenDevices::Remove(hal::DeviceId id) {
  MutexLock lock(mutex_);
  devices_.erase(id);
}

Result<OpenDevices::Entry> OpenDevices::Find(hal::DeviceId id) const {
  MutexLock lock(mutex_);
  const auto found = devices_.find(id);
  if (found == devices_.end()) {
    return InvalidArgument(fmt::format("device id {} is not an open device of this driver",
                                       static_cast<std::uint32_t>(id)));
  }
  return found->second;
}

Status StatusOf(const VendorApi& api, std::string_view call, Code code) {
  const char* name = nullptr;
  const char* text = nullptr;
  api.error_name(code, &name);
  api.error_text(code, &text);
  const Verdict verdict = api.judge(code);
  return Status(verdict.device_lost ? StatusCode::kDeviceLost : verdict.code,
                fmt::format("{}: {}", call, text == nullptr ? "unknown error" : text))
      .WithVendor(code, name == nullptr ? "" : name);
}

Result<std::unique_ptr<hal::Device>> VendorDevice::Open(const VendorApi& api,
                                                        std::shared_ptr<OpenDevices> open,
                                                        hal::DeviceInfo info, int device) {
  void* context = nullptr;
  if (const Code code = api.context_retain(&context, device); code != kSuccess) {
    Status status = StatusOf(api, "opening the device", code);
    if (status.code() != StatusCode::kDeviceLost) return status;
    return std::move(status).Annotate(
        fmt::format("{} was lost in this process, and the library brings it back in a new process "
                    "only",
                    info.name));
  }
  // From here on the destructor gives the context back.
  std::unique_ptr<VendorDevice> opened(
      new VendorDevice(api, std::move(open), std::move(info), device, context));
  CurrentScope current(api, context);
  if (const Code code = api.capabilities(device, &opened->capabilities_); code != kSuccess) {
    return StatusOf(api, "asking for the device's capabilities", code);
  }
  if (const Code code = api.priority_range(&opened->least_priority_, &opened->greatest_priority_);
      code != kSuccess) {
    return StatusOf(api, "asking for the priorities of streams", code);
  }
  return std::unique_ptr<hal::Device>(std::move(opened));
}

VendorDevice::VendorDevice(const VendorApi& api, std::shared_ptr<OpenDevices> open,
                           hal::DeviceInfo info, int device, void* context)
    : api_(api),
      open_(std::move(open)),
      info_(std::move(info)),
      device_(device),
      context_(context),
      id_(hal::NextDeviceId()) {
  open_->Add(id_, {device, context});
}

VendorDevice::~VendorDevice() {
  if (!lost_) {
    CurrentScope current(api_, context_);
    CaptureModeScope mode(api_);
    MutexLock streams_lock(streams_mutex_);
    for (const Retired& retired : retired_) api_.stream_destroy(retired.stream);
    if (upload_stream_ != nullptr) api_.stream_destroy(upload_stream_);
    MutexLock marks_lock(marks_mutex_);
    for (void* mark : spare_marks_) api_.event_destroy(mark);
  }
  open_->Remove(id_);
  open_->addresses().Forget(id_);
  open_->pinned().Forget(id_);
  if (const Code code = api_.context_release(device_); code != kSuccess && !lost_) {
    Log(LogLevel::kWarn, StatusOf(api_, "closing the device", code).ToString());
  }
}

Status VendorDevice::Health() const {
  if (!home_.here()) {
    return FailedPrecondition(
        "this device was opened before the process forked, and cannot be used in the child; start "
        "the child with exec or spawn");
  }
  if (!lost_.load(std::memory_order_acquire)) return OkStatus();
  MutexLock lock(fault_mutex_);
  return fault_;
}

Status VendorDevice::Enter(hal::Primitive primitive, bool capable) const {
  if (lost_.load(std::memory_order_acquire) || !home_.here()) {
    return Health();
  }
  if (hal::InHostCall()) return hal::RefusedInHostCall(primitive);
  if (capable) return OkStatus();
  return Unimplemented(fmt::format("{} cannot do {}", info_.name, hal::PrimitiveName(primitive)));
}

Status VendorDevice::Fail(hal::Primitive primitive, Code code) {
  Status status = StatusOf(api_, hal::PrimitiveName(primitive), code);
  if (status.code() != StatusCode::kDeviceLost) return status;
  MutexLock lock(fault_mutex_);
  if (!lost_.load()) {
    fault_ = std::move(status).Annotate(fmt::format("{} is lost", info_.name));
    lost_.store(true, std::memory_order_release);
  }
  return fault_;
}

Result<hal::ModuleSource> VendorDevice::StandardKernels() const {
  if (api_.standard_kernels.empty()) {
    return Unimplemented(fmt::format("there are no standard kernels for {}", info_.name));
  }
  // With the zero byte behind them, so that loading them copies nothing.
  return hal::ModuleSource::Image(
      std::as_bytes(std::span(api_.standard_kernels.data(), api_.standard_kernels.size() + 1)));
}

}  // namespace keel::vendor
