// Driver: one way of reaching devices (the simulated one, a vendor's library), and the registry
// of all of them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "keel/base/export.h"
#include "keel/base/mutex.h"
#include "keel/base/result.h"
#include "keel/hal/device.h"

namespace keel::hal {

// Thread-safe. Lives as long as the process.
class KEEL_EXPORT Driver {
 public:
  virtual ~Driver() = default;

  // "sim": lower case, used by KEEL_DRIVER.
  virtual std::string_view name() const = 0;
  virtual bool simulated() const = 0;
  // The driver's devices, without opening one; cheap after the first call. Empty: there is none.
  // kUnavailable: the driver cannot be used here, and why (no library, no permission, ...).
  virtual Result<std::vector<DeviceInfo>> Enumerate() = 0;
  // The same object for the same ordinal while anybody holds it; a new one after that.
  // kNotFound names the ordinals there are.
  virtual Result<std::shared_ptr<Device>> Open(int ordinal) = 0;
};

// The list of drivers: those that are built in, in the order in which a default is looked for,
// and any that a program adds.
class KEEL_EXPORT Registry {
 public:
  // The process's registry, with the built-in drivers. Never destroyed, so that it can be used
  // while static objects are.
  static Registry& Global();

  Registry() = default;
  explicit Registry(std::vector<std::unique_ptr<Driver>> drivers);
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // Takes its place before the simulated driver. kAlreadyExists if the name is taken.
  Status Register(std::unique_ptr<Driver> driver) KEEL_EXCLUDES(mutex_);
  std::vector<Driver*> drivers() const KEEL_EXCLUDES(mutex_);
  // kNotFound names the drivers there are.
  Result<Driver*> Find(std::string_view name) const KEEL_EXCLUDES(mutex_);

  // Chosen by SetDefault, else by the environment variable KEEL_DRIVER (read once, at the first
  // call), else the first real driver that has a device that works, else the simulated one. A
  // driver that was chosen by name and cannot be used is an error, never replaced silently. Where
  // nothing works because a driver was configured wrongly, that is the error: kInvalidArgument.
  Result<Driver*> Default() KEEL_EXCLUDES(mutex_);
  Status SetDefault(std::string_view name) KEEL_EXCLUDES(mutex_);
  Result<std::shared_ptr<Device>> OpenDefault(int ordinal = 0) KEEL_EXCLUDES(mutex_);

 private:
  // A name, and who chose it, for errors. Both empty: nobody did.
  struct Choice {
    std::string name;
    std::string by;
  };
  Choice ReadChoice() KEEL_EXCLUDES(mutex_);
  Result<Driver*> FindWorking();

  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Driver>> drivers_ KEEL_GUARDED_BY(mutex_);
  Choice choice_ KEEL_GUARDED_BY(mutex_);
  bool environment_read_ KEEL_GUARDED_BY(mutex_) = false;
  // What was found when nobody chose; null: not looked for yet.
  Driver* found_ KEEL_GUARDED_BY(mutex_) = nullptr;
};

// Makes the shared owner of a device. When the last reference goes, the retry list is drained,
// what is still on it is logged, and the device is destroyed; in a forked child nothing of that
// happens, and the device stays as it was. Every driver's Open and every wrapper returns devices
// through it.
KEEL_EXPORT std::shared_ptr<Device> ShareDevice(std::unique_ptr<Device> device);

// A new id for a device that is being opened. For drivers.
KEEL_EXPORT DeviceId NextDeviceId();

}  // namespace keel::hal
