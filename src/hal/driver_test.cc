#include "keel/hal/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "hal/builtin_drivers.h"
#include "hal/sim_devices_test.h"
#include "keel/hal/capture_mode.h"
#include "keel/hal/stream.h"

namespace keel::hal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A driver whose devices, if it has any that work, are simulated ones.
class FakeDriver : public Driver {
 public:
  FakeDriver(std::string name, bool simulated, Status enumerate, bool has_device, Status open)
      : name_(std::move(name)),
        simulated_(simulated),
        enumerate_(std::move(enumerate)),
        has_device_(has_device),
        open_(std::move(open)) {}

  std::string_view name() const override { return name_; }
  bool simulated() const override { return simulated_; }
  Result<std::vector<DeviceInfo>> Enumerate() override {
    if (!enumerate_.ok()) return enumerate_;
    return has_device_ ? devices_->Enumerate() : std::vector<DeviceInfo>();
  }
  Result<std::shared_ptr<Device>> Open(int ordinal) override {
    ++opened_;
    if (!open_.ok()) return open_;
    return devices_->Open(ordinal);
  }
  int opened() const { return opened_; }

 private:
  const std::string name_;
  const bool simulated_;
  const Status enumerate_;
  const bool has_device_;
  const Status open_;
  int opened_ = 0;
  std::unique_ptr<Driver> devices_ = SimDriver(1);
};

std::unique_ptr<FakeDriver> Working(std::string name, bool simulated = false) {
  return std::make_unique<FakeDriver>(std::move(name), simulated, OkStatus(), true, OkStatus());
}
std::unique_ptr<FakeDriver> WithoutLibrary(std::string name) {
  return std::make_unique<FakeDriver>(std::move(name), false, Unavailable("no library"), false,
                                      OkStatus());
}
std::unique_ptr<FakeDriver> WithoutDevice(std::string name) {
  return std::make_unique<FakeDriver>(std::move(name), false, OkStatus(), false, OkStatus());
}
std::unique_ptr<FakeDriver> WithBrokenDevice(std::string name) {
  return std::make_unique<FakeDriver>(std::move(name), false, OkStatus(), true,
                                      Internal("cannot start"));
}

class RegistryTest : public ::testing::Test {
 protected:
  void SetUp() override { unsetenv("KEEL_DRIVER"); }
  void TearDown() override { unsetenv("KEEL_DRIVER"); }

  template <class... Drivers>
  void Add(Drivers... drivers) {
    const auto add = [this](std::unique_ptr<Driver> driver) {
      EXPECT_TRUE(IsOk(registry_.Register(std::move(driver))));
    };
    (add(std::move(drivers)), ...);
  }
  std::string DefaultName() {
    const Result<Driver*> driver = registry_.Default();
    return driver.ok() ? std::string((*driver)->name()) : driver.status().ToString();
  }

  Registry registry_;
};

TEST_F(RegistryTest, RealDriversTakeTheirPlaceBeforeTheSimulatedOne) {
  Add(Working("first"), Working("sim", true), Working("second"), Working("third"));
  std::vector<std::string> names;
  for (Driver* driver : registry_.drivers()) names.emplace_back(driver->name());
  EXPECT_EQ(names, (std::vector<std::string>{"first", "second", "third", "sim"}));
}

TEST_F(RegistryTest, ANameIsTakenOnce) {
  Add(Working("one"));
  EXPECT_EQ(registry_.Register(Working("one")).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(registry_.Register(nullptr).code(), StatusCode::kInvalidArgument);
}

TEST_F(RegistryTest, FindNamesTheDriversThereAre) {
  Add(Working("one"), Working("sim", true));
  EXPECT_EQ(Need(registry_.Find("one"))->name(), "one");
  const Status status = registry_.Find("two").status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.ToString(), AllOf(HasSubstr("'two'"), HasSubstr("one, sim")));
}

TEST_F(RegistryTest, TheDefaultIsTheFirstRealDriverWhoseDeviceWorks) {
  Add(WithoutLibrary("a"), WithoutDevice("b"), WithBrokenDevice("c"), Working("d"), Working("e"),
      Working("sim", true));
  EXPECT_EQ(DefaultName(), "d");
}

TEST_F(RegistryTest, TheSimulatedDriverIsTheDefaultWithoutARealDevice) {
  Add(Working("sim", true), WithoutLibrary("a"), WithoutDevice("b"), WithBrokenDevice("c"));
  EXPECT_EQ(DefaultName(), "sim");
}

TEST_F(RegistryTest, WithoutAnyDeviceTheErrorSaysWhyForEachDriver) {
  Add(WithoutLibrary("a"), WithoutDevice("b"), WithBrokenDevice("c"));
  const Status status = registry_.Default().status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.ToString(), AllOf(HasSubstr("a: UNAVAILABLE: no library"),
                                       HasSubstr("b: UNAVAILABLE: it has no device"),
                                       HasSubstr("c: INTERNAL: cannot start")));
}

TEST_F(RegistryTest, ADriverIsLookedForOnce) {
  auto driver = Working("a");
  FakeDriver* const fake = driver.get();
  Add(std::move(driver));
  EXPECT_EQ(DefaultName(), "a");
  EXPECT_EQ(DefaultName(), "a");
  EXPECT_EQ(fake->opened(), 1);
}

TEST_F(RegistryTest, ADriverThatIsRegisteredLaterIsSeen) {
  Add(Working("sim", true));
  EXPECT_EQ(DefaultName(), "sim");
  Add(Working("real"));
  EXPECT_EQ(DefaultName(), "real");
}

TEST_F(RegistryTest, TheEnvironmentChoosesAndIsReadOnce) {
  Add(Working("a"), Working("b"), Working("sim", true));
  setenv("KEEL_DRIVER", "b", 1);
  EXPECT_EQ(DefaultName(), "b");
  setenv("KEEL_DRIVER", "sim", 1);
  EXPECT_EQ(DefaultName(), "b");
}

TEST_F(RegistryTest, AVariableThatIsSetLaterIsNotSeen) {
  Add(Working("a"), Working("sim", true));
  EXPECT_EQ(DefaultName(), "a");
  setenv("KEEL_DRIVER", "sim", 1);
  EXPECT_EQ(DefaultName(), "a");
}

TEST_F(RegistryTest, AnEmptyVariableChoosesNothing) {
  Add(Working("a"), Working("sim", true));
  setenv("KEEL_DRIVER", "", 1);
  EXPECT_EQ(DefaultName(), "a");
}

TEST_F(RegistryTest, SetDefaultIsBeforeTheEnvironment) {
  Add(Working("a"), Working("b"), Working("sim", true));
  setenv("KEEL_DRIVER", "b", 1);
  EXPECT_TRUE(IsOk(registry_.SetDefault("sim")));
  EXPECT_EQ(DefaultName(), "sim");
  EXPECT_EQ(registry_.SetDefault("zzz").code(), StatusCode::kNotFound);
  EXPECT_EQ(DefaultName(), "sim");
}

TEST_F(RegistryTest, AChosenDriverThatCannotBeUsedIsAnErrorAndIsNotReplaced) {
  Add(WithoutLibrary("gone"), WithoutDevice("none"), Working("sim", true));
  setenv("KEEL_DRIVER", "gone", 1);
  const Status status = registry_.Default().status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.ToString(), AllOf(HasSubstr("'gone'"), HasSubstr("chosen by KEEL_DRIVER"),
                                       HasSubstr("no library")));
  EXPECT_EQ(registry_.OpenDefault().status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(IsOk(registry_.SetDefault("none")));
  EXPECT_THAT(registry_.Default().status().ToString(),
              AllOf(HasSubstr("chosen by SetDefault"), HasSubstr("no device")));
}

TEST_F(RegistryTest, AnUnknownNameInTheEnvironmentListsTheNames) {
  Add(Working("a"), Working("sim", true));
  setenv("KEEL_DRIVER", "smi", 1);
  const Status status = registry_.Default().status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.ToString(),
              AllOf(HasSubstr("KEEL_DRIVER"), HasSubstr("'smi'"), HasSubstr("a, sim")));
}

TEST_F(RegistryTest, OpenDefaultOpensADeviceOfTheDefault) {
  Add(Working("sim", true));
  const std::shared_ptr<Device> device = Need(registry_.OpenDefault());
  EXPECT_EQ(device->info().ordinal, 0);
  EXPECT_EQ(registry_.OpenDefault(77).status().code(), StatusCode::kNotFound);
}

TEST(BuiltinDriversTest, EndWithTheSimulatedOneAndHaveNamesOfTheirOwn) {
  const std::vector<std::unique_ptr<Driver>> drivers = BuiltinDrivers();
  ASSERT_FALSE(drivers.empty());
  EXPECT_TRUE(drivers.back()->simulated());
  std::set<std::string_view> names;
  for (const auto& driver : drivers) names.insert(driver->name());
  EXPECT_EQ(names.size(), drivers.size());
  EXPECT_TRUE(IsOk(Registry::Global().Find("sim")));
}

TEST(DeviceIdTest, IsNeverReused) {
  const std::unique_ptr<Driver> driver = SimDriver(1);
  const DeviceId first = Need(driver->Open(0))->id();
  const DeviceId second = Need(driver->Open(0))->id();
  EXPECT_NE(first, DeviceId::kNone);
  EXPECT_NE(first, second);
}

TEST(CaptureModeTest, IsRelaxedAndTheThreadsOwn) {
  EXPECT_EQ(ThreadCaptureMode(), CaptureMode::kRelaxed);
  {
    const ScopedCaptureMode strict(CaptureMode::kGlobal);
    EXPECT_EQ(ThreadCaptureMode(), CaptureMode::kGlobal);
    std::thread other([] { EXPECT_EQ(ThreadCaptureMode(), CaptureMode::kRelaxed); });
    other.join();
  }
  EXPECT_EQ(ThreadCaptureMode(), CaptureMode::kRelaxed);
}

class ShareDeviceTest : public SimDevicesTest {};

TEST_F(ShareDeviceTest, ClosingDrainsTheRetryList) {
  device_->FailNth(Primitive::kDestroyStream, 1, Internal("once"));
  {
    const Stream stream = Need(Stream::Create(device_));
  }
  EXPECT_EQ(device_->retries().size(), 1U);
  const std::weak_ptr<Device> closed = device_;
  int attempts = 0;
  device_->retries().Add({"counts", [&] {
                            ++attempts;
                            return OkStatus();
                          }});
  device_ = nullptr;
  EXPECT_TRUE(closed.expired());
  EXPECT_EQ(attempts, 1);
}

TEST_F(ShareDeviceTest, WhatIsStillLeftIsLoggedAndTheDeviceIsClosedAnyway) {
  SetLogLevel(LogLevel::kError);
  const std::weak_ptr<Device> closed = device_;
  device_->retries().Add({"Unmap of a thing", [] { return Internal("stuck"); }});
  ::testing::internal::CaptureStderr();
  device_ = nullptr;
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(closed.expired());
  EXPECT_THAT(log, AllOf(HasSubstr("Unmap of a thing"), HasSubstr("stuck")));
}

// What an entry kept gives back through the device, when the entry is dropped.
struct UsesDeviceWhenDropped {
  Device* device;
  ~UsesDeviceWhenDropped() { EXPECT_TRUE(IsOk(device->GetMemoryInfo())); }
};

TEST_F(ShareDeviceTest, EntriesAreDroppedWhileTheDeviceIsWhole) {
  std::shared_ptr<UsesDeviceWhenDropped> kept(new UsesDeviceWhenDropped{device_.get()});
  device_->retries().Add({"stuck", [kept = std::move(kept)] { return Internal("stuck"); }});
  const std::weak_ptr<Device> closed = device_;
  device_ = nullptr;
  EXPECT_TRUE(closed.expired());
}

TEST_F(ShareDeviceTest, ALostDeviceIsClosedInSilence) {
  SetLogLevel(LogLevel::kDebug);
  device_->retries().Add({"anything", [] { return Internal("stuck"); }});
  controls().Lose("on purpose");
  ::testing::internal::CaptureStderr();
  device_ = nullptr;
  EXPECT_EQ(::testing::internal::GetCapturedStderr().find("anything"), std::string::npos);
}

TEST(ShareDeviceNothingTest, OfNothingIsNothing) { EXPECT_EQ(ShareDevice(nullptr), nullptr); }

}  // namespace
}  // namespace keel::hal
