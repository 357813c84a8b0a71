#include "keel/hal/owned_handle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "hal/sim_devices_test.h"
#include "keel/hal/event.h"
#include "keel/hal/memory.h"
#include "keel/hal/module.h"
#include "keel/hal/standard_kernels.h"
#include "keel/hal/stream.h"

namespace keel::hal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class OwnedHandleTest : public SimDevicesTest {};

TEST_F(OwnedHandleTest, EachOwnerGivesBackWhenItsScopeEnds) {
  {
    const Stream stream = Need(Stream::Create(device_));
    const Event event = Need(Event::Create(device_));
    const PlainMemory plain = Need(PlainMemory::Create(device_, 1_MiB));
    const HostMemory host = Need(HostMemory::Create(device_, 1_MiB));
    const Module module = Need(Module::LoadStandard(device_));
    alignas(4096) static std::array<std::byte, 8192> buffer;
    const HostRegistration registration =
        Need(HostRegistration::Create(device_, buffer.data(), Bytes(buffer.size())));
    EXPECT_EQ(device_->Live().size(), 6U) << Live();
    EXPECT_TRUE(IsOk(host.address()));
    EXPECT_TRUE(IsOk(module.Find(kernels::kFill)));
    EXPECT_TRUE(IsOk(event.Record(stream.get())));
    EXPECT_TRUE(IsOk(event.Synchronize()));
    EXPECT_EQ(Need(event.Query()), Completion::kDone);
    EXPECT_TRUE(IsOk(stream.Synchronize()));
    EXPECT_EQ(Need(stream.Query()), Completion::kDone);
    EXPECT_EQ(plain.size(), 1_MiB);
    EXPECT_TRUE(plain.address());
  }
  ExpectNothingLeft();
}

TEST_F(OwnedHandleTest, MovingTransfersAndGivesBackOnce) {
  Stream first = Need(Stream::Create(device_));
  const StreamHandle handle = first.get();
  Stream second = std::move(first);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): what the test is about
  EXPECT_FALSE(first.get());
  EXPECT_EQ(second.get(), handle);
  EXPECT_EQ(device_->calls(Primitive::kDestroyStream), 0U);

  second = Need(Stream::Create(device_));
  EXPECT_EQ(device_->calls(Primitive::kDestroyStream), 1U);
  Stream& alias = second;
  second = std::move(alias);
  EXPECT_TRUE(second);
  EXPECT_EQ(device_->calls(Primitive::kDestroyStream), 1U);
  second = Stream();
  EXPECT_EQ(device_->calls(Primitive::kDestroyStream), 2U);
  ExpectNothingLeft();
}

TEST_F(OwnedHandleTest, CloseGivesBackOnceAndAnEmptyOwnerIsFine) {
  Event event = Need(Event::Create(device_));
  EXPECT_TRUE(IsOk(event.Close()));
  EXPECT_FALSE(event);
  EXPECT_TRUE(IsOk(event.Close()));
  EXPECT_EQ(device_->calls(Primitive::kDestroyEvent), 1U);
}

TEST_F(OwnedHandleTest, AFailedCloseStillOwnsAndMayBeTriedAgain) {
  Event event = Need(Event::Create(device_));
  device_->FailNth(Primitive::kDestroyEvent, 1, Internal("not now"));
  EXPECT_EQ(event.Close().message(), "not now");
  EXPECT_TRUE(event);
  EXPECT_TRUE(device_->retries().empty());
  EXPECT_TRUE(IsOk(event.Close()));
  ExpectNothingLeft();
}

TEST_F(OwnedHandleTest, ReleaseLeavesTheHandleToTheCaller) {
  Event event = Need(Event::Create(device_));
  const EventHandle handle = event.Release();
  EXPECT_FALSE(event);
  EXPECT_EQ(device_->Live().size(), 1U);
  EXPECT_TRUE(IsOk(device_->DestroyEvent(handle)));
}

TEST_F(OwnedHandleTest, BorrowedStreamsAreLeftToTheirOwner) {
  Stream own = Need(Stream::Create(device_));
  {
    Stream borrowed = Need(Stream::Borrow(device_, own.get().value));
    EXPECT_TRUE(borrowed.borrowed());
    EXPECT_TRUE(IsOk(borrowed.Synchronize()));
    EXPECT_TRUE(IsOk(borrowed.Close()));
    const Stream shared = Need(Stream::Default(device_, DefaultStream::kLegacy));
    EXPECT_TRUE(shared.borrowed());
  }
  EXPECT_EQ(device_->calls(Primitive::kDestroyStream), 0U);
  EXPECT_TRUE(IsOk(own.Synchronize()));
}

TEST_F(OwnedHandleTest, AnOwnerKeepsItsDeviceOpen) {
  const std::weak_ptr<Device> watched = inner_;
  Stream stream = Need(Stream::Create(device_));
  device_ = nullptr;
  inner_ = nullptr;
  EXPECT_FALSE(watched.expired());
  EXPECT_TRUE(IsOk(stream.Synchronize()));
  stream = Stream();
  EXPECT_TRUE(watched.expired());
}

// G5
TEST_F(OwnedHandleTest, DestructorFailureIsLoggedAndRetried) {
  SetLogLevel(LogLevel::kWarn);
  ::testing::internal::CaptureStderr();
  {
    const Stream stream = Need(Stream::Create(device_));
    device_->FailNth(Primitive::kDestroyStream, 1, Internal("no luck"));
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("DestroyStream of 0x"), HasSubstr("INTERNAL: no luck")));
  EXPECT_EQ(device_->retries().size(), 1U);
  EXPECT_THAT(device_->retries().List().front(), HasSubstr("DestroyStream of 0x"));
  EXPECT_EQ(device_->Live().size(), 1U);
  EXPECT_TRUE(IsOk(device_->retries().Drain()));
  ExpectNothingLeft();
}

TEST_F(OwnedHandleTest, TheNextCloseDrainsTheRetryList) {
  {
    const Stream stream = Need(Stream::Create(device_));
    device_->FailNth(Primitive::kDestroyStream, 1, Internal("no luck"));
  }
  Event event = Need(Event::Create(device_));
  EXPECT_TRUE(IsOk(event.Close()));
  ExpectNothingLeft();
}

TEST_F(OwnedHandleTest, WhatStaysOnTheListIsNotTheFailureOfAnotherClose) {
  bool stuck = true;
  device_->retries().Add({"stuck", [&] { return stuck ? Internal("stuck") : OkStatus(); }});
  Event event = Need(Event::Create(device_));
  EXPECT_TRUE(IsOk(event.Close()));
  EXPECT_EQ(device_->retries().size(), 1U);
  stuck = false;
  EXPECT_TRUE(IsOk(device_->retries().Drain()));
}

// The retry list belongs to the device: an entry that kept it open would keep it open for ever.
TEST_F(OwnedHandleTest, ARetryDoesNotKeepTheDeviceOpen) {
  const std::weak_ptr<Device> wrapper = device_;
  const std::weak_ptr<Device> inner = inner_;
  {
    const Stream stream = Need(Stream::Create(device_));
    const MappedMemory mapped = Need(MappedMemory::Create(device_, kPage));
    device_->FailNth(Primitive::kDestroyStream, 1, Internal("no"));
    device_->FailNth(Primitive::kUnmap, 1, Internal("no"));
  }
  EXPECT_EQ(device_->retries().size(), 2U);
  device_ = nullptr;
  inner_ = nullptr;
  EXPECT_TRUE(wrapper.expired());
  EXPECT_TRUE(inner.expired());
}

TEST_F(OwnedHandleTest, OnALostDeviceThereIsNothingToGiveBack) {
  SetLogLevel(LogLevel::kDebug);
  ::testing::internal::CaptureStderr();
  {
    const Stream stream = Need(Stream::Create(device_));
    const PlainMemory plain = Need(PlainMemory::Create(device_, 1_MiB));
    const MappedMemory mapped = Need(MappedMemory::Create(device_, kPage));
    Event event = Need(Event::Create(device_));
    controls().Lose("on purpose");
    EXPECT_EQ(event.Close().code(), StatusCode::kDeviceLost);
    EXPECT_FALSE(event);
  }
  EXPECT_TRUE(device_->retries().empty());
  EXPECT_EQ(Live(), "");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(log.find("tried again"), std::string::npos) << log;
}

TEST_F(OwnedHandleTest, AnOwnerOfNothingSaysSo) {
  EXPECT_EQ(Stream().Synchronize().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Stream().Query().status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Event().Record({}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Event().Synchronize().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Event().Query().status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Module().Find("x").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(HostMemory().address().status().code(), StatusCode::kInvalidArgument);
}

TEST_F(OwnedHandleTest, AFailedCreationOwnsNothing) {
  for (const Primitive primitive :
       {Primitive::kCreateStream, Primitive::kCreateEvent, Primitive::kAllocatePlain,
        Primitive::kAllocateHost, Primitive::kLoadModule}) {
    device_->FailNth(primitive, 1, ResourceExhausted("none left"));
  }
  EXPECT_EQ(Stream::Create(device_).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Event::Create(device_).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(PlainMemory::Create(device_, 1_KiB).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(HostMemory::Create(device_, 1_KiB).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Module::LoadStandard(device_).status().code(), StatusCode::kResourceExhausted);
  ExpectNothingLeft();
}

}  // namespace
}  // namespace keel::hal
