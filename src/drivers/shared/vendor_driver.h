// VendorDriver: a hal::Driver over a vendor's library, which is looked for when it is first used.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/shared/vendor_api.h"
#include "drivers/shared/vendor_device.h"
#include "keel/base/mutex.h"
#include "keel/hal/driver.h"

namespace keel::vendor {

// Opens the library and fills the table, which lives for ever; kUnavailable says why not.
using LoadApi = Result<const VendorApi*> (*)();

class VendorDriver final : public hal::Driver {
 public:
  VendorDriver(std::string_view name, LoadApi load) : name_(name), load_(load) {}

  std::string_view name() const override { return name_; }
  bool simulated() const override { return false; }
  Result<std::vector<hal::DeviceInfo>> Enumerate() override KEEL_EXCLUDES(mutex_);
  Result<std::shared_ptr<hal::Device>> Open(int ordinal) override KEEL_EXCLUDES(mutex_);

 private:
  // Loads and initialises, once; the outcome is kept.
  Status PrepareLocked() KEEL_REQUIRES(mutex_);

  const std::string name_;
  const LoadApi load_;
  Mutex mutex_;
  bool prepared_ KEEL_GUARDED_BY(mutex_) = false;
  Status outcome_ KEEL_GUARDED_BY(mutex_);
  const VendorApi* api_ KEEL_GUARDED_BY(mutex_) = nullptr;
  std::vector<hal::DeviceInfo> devices_ KEEL_GUARDED_BY(mutex_);
  std::vector<int> numbers_ KEEL_GUARDED_BY(mutex_);  // the library's, by ordinal
  std::map<int, std::weak_ptr<hal::Device>> open_ KEEL_GUARDED_BY(mutex_);
  std::shared_ptr<OpenDevices> open_devices_ = std::make_shared<OpenDevices>();
};

}  // namespace keel::vendor
