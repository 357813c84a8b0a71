#include "drivers/shared/vendor_driver.h"

#include <fmt/format.h>

#include <utility>

namespace keel::vendor {

Status VendorDriver::PrepareLocked() {
  if (prepared_) return outcome_;
  prepared_ = true;
  const auto prepare = [this]() KEEL_REQUIRES(mutex_) -> Status {
    KEEL_ASSIGN(api_, load_());
    const auto check = [this](std::string_view what, Code code) KEEL_REQUIRES(mutex_) -> Status {
      if (code == kSuccess) return OkStatus();
      const Status status = StatusOf(*api_, what, code);
      return Unavailable(std::string(status.message()))
          .WithVendor(status.vendor_code(), status.vendor_name());
    };
    KEEL_TRY(check("initialising the driver", api_->init(0)));
    int count = 0;
    KEEL_TRY(check("counting devices", api_->device_count(&count)));
    for (int ordinal = 0; ordinal < count; ++ordinal) {
      int device = 0;
      hal::DeviceInfo info;
      info.driver = name_;
      info.ordinal = ordinal;
      KEEL_TRY(check("finding a device", api_->device_get(&device, ordinal)));
      KEEL_TRY(check("describing a device", api_->describe(device, &info)));
      devices_.push_back(std::move(info));
      numbers_.push_back(device);
    }
    return OkStatus();
  };
  outcome_ = prepare();
  return outcome_;
}

Result<std::vector<hal::DeviceInfo>> VendorDriver::Enumerate() {
  MutexLock lock(mutex_);
  KEEL_TRY(PrepareLocked());
  return devices_;
}

Result<std::shared_ptr<hal::Device>> VendorDriver::Open(int ordinal) {
  MutexLock lock(mutex_);
  KEEL_TRY(PrepareLocked());
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= devices_.size()) {
    return NotFound(devices_.empty() ? fmt::format("the {} driver has no devices", name_)
                                     : fmt::format("there is no {} device {}; there are 0 to {}",
                                                   name_, ordinal, devices_.size() - 1));
  }
  std::weak_ptr<hal::Device>& slot = open_[ordinal];
  if (std::shared_ptr<hal::Device> device = slot.lock()) return device;
  const auto index = static_cast<std::size_t>(ordinal);
  KEEL_ASSIGN(auto opened,
              VendorDevice::Open(*api_, open_devices_, devices_[index], numbers_[index]));
  std::shared_ptr<hal::Device> device = hal::ShareDevice(std::move(opened));
  slot = device;
  return device;
}

}  // namespace keel::vendor
