#include "keel/hal/driver.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/fork.h"
#include "hal/builtin_drivers.h"
#include "keel/base/log.h"

namespace keel::hal {
namespace {

constexpr const char* kVariable = "KEEL_DRIVER";

std::string Named(std::string_view name) { return "driver '" + std::string(name) + "'"; }

// OK if the driver has a device.
Status HasDevice(Driver& driver) {
  KEEL_ASSIGN(const std::vector<DeviceInfo> devices, driver.Enumerate());
  return devices.empty() ? Unavailable("it has no device") : OkStatus();
}

Status DeviceWorks(Driver& driver) {
  KEEL_TRY(HasDevice(driver));
  return driver.Open(0).status();
}

void CloseDevice(Device* device) noexcept {
  const std::unique_ptr<Device> owned(device);
  RetryList& retries = device->retries();
  if (retries.empty()) return;
  // Without health nothing is left to give back.
  const bool healthy = device->Health().ok();
  Status status;
  if (healthy) status = retries.Drain();
  // While the device is whole: what an entry kept gives back through it.
  const std::vector<std::string> abandoned = retries.Abandon();
  if (!healthy || abandoned.empty()) return;
  std::string message = "device " + std::to_string(device->info().ordinal) + " of " +
                        Named(device->info().driver) + " is closed with something not given back";
  if (!status.ok()) message += " (" + status.ToString() + ")";
  for (const std::string& what : abandoned) message += "; " + what;
  Log(LogLevel::kError, message);
}

}  // namespace

Registry& Registry::Global() {
  static Registry* const registry = new Registry(BuiltinDrivers());
  return *registry;
}

Registry::Registry(std::vector<std::unique_ptr<Driver>> drivers) : drivers_(std::move(drivers)) {}

Status Registry::Register(std::unique_ptr<Driver> driver) {
  if (driver == nullptr) return InvalidArgument("no driver to register");
  MutexLock lock(mutex_);
  for (const auto& other : drivers_) {
    if (other->name() == driver->name()) {
      return AlreadyExists(Named(driver->name()) + " is registered already");
    }
  }
  const auto place = std::find_if(drivers_.begin(), drivers_.end(),
                                  [](const auto& other) { return other->simulated(); });
  drivers_.insert(place, std::move(driver));
  found_ = nullptr;
  return OkStatus();
}

std::vector<Driver*> Registry::drivers() const {
  MutexLock lock(mutex_);
  std::vector<Driver*> drivers;
  drivers.reserve(drivers_.size());
  for (const auto& driver : drivers_) drivers.push_back(driver.get());
  return drivers;
}

Result<Driver*> Registry::Find(std::string_view name) const {
  std::string names;
  for (Driver* driver : drivers()) {
    if (driver->name() == name) return driver;
    names += (names.empty() ? "" : ", ") + std::string(driver->name());
  }
  return NotFound("there is no " + Named(name) +
                  "; there are: " + (names.empty() ? "none" : names));
}

Registry::Choice Registry::ReadChoice() {
  MutexLock lock(mutex_);
  if (choice_.name.empty() && !environment_read_) {
    environment_read_ = true;
    const char* name = std::getenv(kVariable);
    if (name != nullptr && *name != '\0') choice_ = {name, kVariable};
  }
  return choice_;
}

Result<Driver*> Registry::Default() {
  const Choice choice = ReadChoice();
  if (choice.name.empty()) return FindWorking();
  Result<Driver*> driver = Find(choice.name);
  if (!driver.ok()) return std::move(driver).status().Annotate(choice.by);
  Status status = HasDevice(**driver);
  if (!status.ok()) {
    return std::move(status).Annotate(Named(choice.name) + ", chosen by " + choice.by +
                                      ", cannot be used");
  }
  return driver;
}

// Calls into drivers, so without the lock: two threads may look at once, and find the same.
Result<Driver*> Registry::FindWorking() {
  {
    MutexLock lock(mutex_);
    if (found_ != nullptr) return found_;
  }
  std::string reasons;
  Status mistake;
  for (const bool simulated : {false, true}) {
    for (Driver* driver : drivers()) {
      if (driver->simulated() != simulated) continue;
      const Status status = DeviceWorks(*driver);
      if (status.ok()) {
        MutexLock lock(mutex_);
        return found_ = driver;
      }
      if (mistake.ok() && status.code() == StatusCode::kInvalidArgument) mistake = status;
      reasons += "; " + std::string(driver->name()) + ": " + status.ToString();
    }
  }
  if (!mistake.ok()) return mistake;
  return Unavailable("no driver has a device that works" + reasons);
}

Status Registry::SetDefault(std::string_view name) {
  KEEL_TRY(Find(name).status());
  MutexLock lock(mutex_);
  choice_ = {std::string(name), "SetDefault"};
  return OkStatus();
}

Result<std::shared_ptr<Device>> Registry::OpenDefault(int ordinal) {
  KEEL_ASSIGN(Driver * driver, Default());
  return driver->Open(ordinal);
}

std::shared_ptr<Device> ShareDevice(std::unique_ptr<Device> device) {
  if (device == nullptr) return nullptr;
  // In a forked child it stays as it is, and so does its retry list: see DeleteHere.
  return {device.release(), [home = Home()](Device* last) {
            if (home.here()) CloseDevice(last);
          }};
}

DeviceId NextDeviceId() {
  static std::atomic<std::uint32_t> last{0};
  return static_cast<DeviceId>(last.fetch_add(1, std::memory_order_relaxed) + 1);
}

}  // namespace keel::hal
