#include "keel/hal/instrumented.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hal/sim_devices_test.h"

namespace keel::hal {
namespace {

class InstrumentedTest : public SimDevicesTest {
 protected:
  std::uint64_t Count(Primitive primitive) const { return device_->calls(primitive); }
  std::vector<Primitive> Creators() const {
    std::vector<Primitive> creators;
    for (const LiveObject& object : device_->Live()) creators.push_back(object.created_by);
    return creators;
  }
};

TEST(PrimitiveTest, EveryOneHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kPrimitiveCount; ++i) {
    names.insert(PrimitiveName(static_cast<Primitive>(i)));
  }
  EXPECT_EQ(names.size(), kPrimitiveCount);
  EXPECT_EQ(names.count("unknown primitive"), 0U);
  EXPECT_EQ(PrimitiveName(Primitive::kCopy), "EnqueueCopy");
  EXPECT_EQ(PrimitiveName(Primitive::kCreateMemory), "CreateMemory");
  EXPECT_EQ(PrimitiveName(Primitive::kCount), "unknown primitive");
}

TEST_F(InstrumentedTest, IsTheDeviceItWraps) {
  EXPECT_EQ(device_->id(), inner_->id());
  EXPECT_EQ(&device_->Innermost(), inner_.get());
  EXPECT_EQ(&device_->info(), &inner_->info());
  EXPECT_EQ(&device_->capabilities(), &inner_->capabilities());
  EXPECT_TRUE(IsOk(device_->Health()));
  EXPECT_TRUE(IsOk(device_->StandardKernels()));
  EXPECT_EQ(device_->calls(), 0U);
  controls().Lose("gone");
  EXPECT_EQ(device_->Health().code(), StatusCode::kDeviceLost);
}

TEST_F(InstrumentedTest, CountsAllAndByKind) {
  const StreamHandle stream = Need(device_->CreateStream({}));
  EXPECT_TRUE(IsOk(device_->QueryStream(stream)));
  EXPECT_TRUE(IsOk(device_->QueryStream(stream)));
  EXPECT_FALSE(device_->QueryStream({}).ok());
  EXPECT_EQ(device_->calls(), 4U);
  EXPECT_EQ(Count(Primitive::kQueryStream), 3U);
  EXPECT_EQ(Count(Primitive::kCreateStream), 1U);
  EXPECT_EQ(Count(Primitive::kMap), 0U);
  device_->ResetCounts();
  EXPECT_EQ(device_->calls(), 0U);
  EXPECT_EQ(Count(Primitive::kQueryStream), 0U);
  EXPECT_TRUE(IsOk(device_->DestroyStream(stream)));
  EXPECT_EQ(device_->calls(), 1U);
}

TEST_F(InstrumentedTest, FailsTheNthCallOfAnyKindOnceWithoutReachingTheDevice) {
  device_->FailNth(2, ResourceExhausted("injected"));
  EXPECT_TRUE(IsOk(device_->GetMemoryInfo()));
  EXPECT_EQ(device_->failed(), std::nullopt);
  const Result<DeviceAddress> failed = device_->AllocatePlain(1_MiB);
  EXPECT_EQ(failed.status().ToString(), "RESOURCE_EXHAUSTED: injected");
  EXPECT_EQ(device_->failed(), Primitive::kAllocatePlain);
  EXPECT_EQ(controls().used(), 0_B);
  EXPECT_EQ(Live(), "");
  const DeviceAddress plain = Need(device_->AllocatePlain(1_MiB));
  EXPECT_TRUE(IsOk(device_->FreePlain(plain)));
  // A failed call is counted too.
  EXPECT_EQ(Count(Primitive::kAllocatePlain), 2U);
}

TEST_F(InstrumentedTest, NoKindOfFailedCallReachesTheDevice) {
  const std::shared_ptr<InstrumentedDevice> outer = Instrumented(device_);
  const auto fail_next = [&] { outer->FailNth(1, Internal("injected")); };
  fail_next();
  EXPECT_FALSE(outer->GetMemoryInfo().ok());
  fail_next();
  EXPECT_FALSE(outer->Synchronize(Deadline::Now()).ok());
  fail_next();
  EXPECT_FALSE(outer->CreateStream({}).ok());
  fail_next();
  EXPECT_FALSE(outer->DestroyStream({}).ok());
  fail_next();
  EXPECT_FALSE(outer->Map({}, kPage, Offset(0), {}).ok());
  fail_next();
  EXPECT_FALSE(outer->Unmap({}, kPage).ok());
  fail_next();
  EXPECT_FALSE(outer->RegisterHost(nullptr, kPage).ok());
  fail_next();
  EXPECT_FALSE(outer->EnablePeerAccess(peer_->id()).ok());
  fail_next();
  EXPECT_FALSE(outer->BeginCapture({}, CaptureMode::kRelaxed).ok());
  fail_next();
  EXPECT_FALSE(outer->EndCapture({}).ok());
  EXPECT_EQ(outer->calls(), 10U);
  EXPECT_EQ(device_->calls(), 0U);
}

TEST_F(InstrumentedTest, FailsTheNthCallOfOneKind) {
  device_->FailNth(Primitive::kGetMemoryInfo, 2, Internal("second"));
  EXPECT_TRUE(IsOk(device_->CanAccessPeer(device_->id())));
  EXPECT_TRUE(IsOk(device_->GetMemoryInfo()));
  EXPECT_EQ(device_->GetMemoryInfo().status().message(), "second");
  EXPECT_TRUE(IsOk(device_->GetMemoryInfo()));
}

TEST_F(InstrumentedTest, NCountsFromNowAndResetDoesNotMoveIt) {
  EXPECT_TRUE(IsOk(device_->GetMemoryInfo()));
  device_->FailNth(2, Internal("any"));
  device_->FailNth(Primitive::kGetMemoryInfo, 3, Internal("third"));
  device_->ResetCounts();
  EXPECT_TRUE(IsOk(device_->GetMemoryInfo()));
  device_->ResetCounts();
  EXPECT_EQ(device_->GetMemoryInfo().status().message(), "any");
  EXPECT_EQ(device_->GetMemoryInfo().status().message(), "third");
  EXPECT_TRUE(IsOk(device_->GetMemoryInfo()));
}

TEST_F(InstrumentedTest, ARuleReplacesTheEarlierOneOfItsScope) {
  device_->FailNth(1, Internal("old"));
  device_->FailNth(2, Internal("new"));
  device_->FailNth(Primitive::kGetMemoryInfo, 1, Internal("old"));
  device_->FailNth(Primitive::kGetMemoryInfo, 3, Internal("newer"));
  EXPECT_TRUE(IsOk(device_->GetMemoryInfo()));
  EXPECT_EQ(device_->GetMemoryInfo().status().message(), "new");
  EXPECT_EQ(device_->GetMemoryInfo().status().message(), "newer");
}

TEST_F(InstrumentedTest, ClearedRulesDoNothing) {
  device_->FailNth(1, Internal("x"));
  EXPECT_FALSE(device_->GetMemoryInfo().ok());
  device_->FailNth(1, Internal("x"));
  device_->FailNth(Primitive::kGetMemoryInfo, 1, Internal("x"));
  device_->DelayNth(Primitive::kGetMemoryInfo, 1, std::chrono::hours(1));
  device_->ClearRules();
  EXPECT_EQ(device_->failed(), std::nullopt);
  EXPECT_TRUE(IsOk(device_->GetMemoryInfo()));
}

TEST_F(InstrumentedTest, AnOkStatusStillFails) {
  device_->FailNth(1, OkStatus());
  EXPECT_FALSE(device_->Synchronize(Deadline::Never()).ok());
}

TEST_F(InstrumentedTest, DelaysTheNthCall) {
  constexpr std::chrono::milliseconds kDelay(30);
  device_->DelayNth(Primitive::kGetMemoryInfo, 2, kDelay);
  EXPECT_TRUE(IsOk(device_->GetMemoryInfo()));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(IsOk(device_->GetMemoryInfo()));
  EXPECT_GE(std::chrono::steady_clock::now() - start, kDelay);
}

TEST_F(InstrumentedTest, ListsWhatIsAliveByAgeUntilItIsGivenBack) {
  const DeviceAddress plain = Need(device_->AllocatePlain(1_MiB));
  const MemoryHandle memory = Need(device_->CreateMemory(kPage, {.exportable = true}));
  const UniqueFd descriptor = Need(device_->ExportMemory(memory));
  const MemoryHandle imported = Need(device_->ImportMemory(descriptor.get(), kPage));
  const DeviceAddress range = Need(device_->ReserveAddress(kPage, 0_B, {}));
  ASSERT_TRUE(IsOk(device_->Map(range, kPage, Offset(0), memory)));
  void* const host = Need(device_->AllocateHost(4_KiB, {}));
  alignas(4096) static std::array<std::byte, 4096> buffer;
  ASSERT_TRUE(IsOk(device_->RegisterHost(buffer.data(), Bytes(buffer.size()))));
  ASSERT_TRUE(IsOk(device_->EnablePeerAccess(peer_->id())));
  ASSERT_TRUE(IsOk(device_->EnablePeerAccess(peer_->id())));
  const StreamHandle stream = Need(device_->CreateStream({}));
  const EventHandle event = Need(device_->CreateEvent({}));
  const ModuleHandle module = Need(device_->LoadModule(Need(device_->StandardKernels())));
  const GraphHandle graph = Need(device_->CreateGraph());
  const ExecHandle exec = Need(device_->Instantiate(graph));
  ASSERT_TRUE(IsOk(device_->BeginCapture(stream, CaptureMode::kRelaxed)));
  EXPECT_EQ(Creators(),
            (std::vector<Primitive>{
                Primitive::kAllocatePlain, Primitive::kCreateMemory, Primitive::kImportMemory,
                Primitive::kReserveAddress, Primitive::kMap, Primitive::kAllocateHost,
                Primitive::kRegisterHost, Primitive::kEnablePeerAccess, Primitive::kCreateStream,
                Primitive::kCreateEvent, Primitive::kLoadModule, Primitive::kCreateGraph,
                Primitive::kInstantiate, Primitive::kBeginCapture}));
  EXPECT_EQ(device_->Live().front().call, 1U);
  EXPECT_EQ(device_->Live().front().ToString(),
            "AllocatePlain #1: " + keel::ToString(DeviceAddress(plain)));

  const GraphHandle captured = Need(device_->EndCapture(stream));
  EXPECT_EQ(Creators().back(), Primitive::kEndCapture);
  EXPECT_TRUE(IsOk(device_->DestroyGraph(captured)));
  EXPECT_TRUE(IsOk(device_->DestroyExec(exec)));
  EXPECT_TRUE(IsOk(device_->DestroyGraph(graph)));
  EXPECT_TRUE(IsOk(device_->UnloadModule(module)));
  EXPECT_TRUE(IsOk(device_->DestroyEvent(event)));
  EXPECT_TRUE(IsOk(device_->DestroyStream(stream)));
  EXPECT_TRUE(IsOk(device_->DisablePeerAccess(peer_->id())));
  EXPECT_TRUE(IsOk(device_->DisablePeerAccess(peer_->id())));
  EXPECT_TRUE(IsOk(device_->UnregisterHost(buffer.data())));
  EXPECT_TRUE(IsOk(device_->FreeHost(host)));
  EXPECT_TRUE(IsOk(device_->Unmap(range, kPage)));
  EXPECT_TRUE(IsOk(device_->FreeAddress(range, kPage)));
  EXPECT_TRUE(IsOk(device_->ReleaseMemory(imported)));
  EXPECT_TRUE(IsOk(device_->ReleaseMemory(memory)));
  EXPECT_TRUE(IsOk(device_->FreePlain(plain)));
  EXPECT_EQ(Live(), "");
}

TEST_F(InstrumentedTest, OneUnmapEndsEveryMappingInItsRangeAndNoOther) {
  const MemoryHandle memory = Need(device_->CreateMemory(kPage, {}));
  const DeviceAddress range = Need(device_->ReserveAddress(4 * kPage, 0_B, {}));
  for (std::uint64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(IsOk(device_->Map(range + i * kPage, kPage, Offset(0), memory)));
  }
  EXPECT_TRUE(IsOk(device_->Unmap(range + kPage, 2 * kPage)));
  std::vector<std::uint64_t> mapped;
  for (const LiveObject& object : device_->Live()) {
    if (object.created_by == Primitive::kMap) mapped.push_back(object.value);
  }
  EXPECT_EQ(mapped, (std::vector<std::uint64_t>{range.value(), (range + 3 * kPage).value()}));
  // Refused by the device: the two stay.
  EXPECT_FALSE(device_->Unmap(range, kPage - 1_B).ok());
  EXPECT_FALSE(device_->FreeAddress(range, 4 * kPage).ok());
  EXPECT_EQ(device_->Live().size(), 4U) << Live();
  EXPECT_TRUE(IsOk(device_->Unmap(range, kPage)));
  EXPECT_TRUE(IsOk(device_->Unmap(range + 3 * kPage, kPage)));
  EXPECT_TRUE(IsOk(device_->FreeAddress(range, 4 * kPage)));
  EXPECT_TRUE(IsOk(device_->ReleaseMemory(memory)));
  ExpectNothingLeft();
}

TEST_F(InstrumentedTest, AFailedGiveBackLeavesTheObjectListed) {
  const StreamHandle stream = Need(device_->CreateStream({}));
  device_->FailNth(Primitive::kDestroyStream, 1, Internal("injected"));
  EXPECT_FALSE(device_->DestroyStream(stream).ok());
  EXPECT_EQ(device_->Live().size(), 1U);
  ASSERT_TRUE(IsOk(device_->BeginCapture(stream, CaptureMode::kRelaxed)));
  EXPECT_FALSE(device_->DestroyStream(stream).ok());
  EXPECT_EQ(device_->Live().size(), 2U) << Live();
  const GraphHandle graph = Need(device_->EndCapture(stream));
  EXPECT_TRUE(IsOk(device_->DestroyGraph(graph)));
  EXPECT_TRUE(IsOk(device_->DestroyStream(stream)));
  ExpectNothingLeft();
}

TEST_F(InstrumentedTest, ACaptureIsAliveUntilTheDeviceEndsIt) {
  const StreamHandle stream = Need(device_->CreateStream({}));
  ASSERT_TRUE(IsOk(device_->BeginCapture(stream, CaptureMode::kThreadLocal)));
  device_->FailNth(Primitive::kEndCapture, 1, Internal("injected"));
  EXPECT_FALSE(device_->EndCapture(stream).ok());
  EXPECT_EQ(device_->Live().size(), 2U) << Live();
  // The wrong thread does not end it either.
  std::thread other([&] { EXPECT_FALSE(device_->EndCapture(stream).ok()); });
  other.join();
  EXPECT_EQ(device_->Live().size(), 2U) << Live();
  // One that was invalidated is over, and there is no graph.
  EXPECT_FALSE(device_->SynchronizeStream(stream, Deadline::Now()).ok());
  EXPECT_FALSE(device_->EndCapture(stream).ok());
  EXPECT_EQ(device_->Live().size(), 1U) << Live();
  EXPECT_TRUE(IsOk(device_->DestroyStream(stream)));
}

TEST_F(InstrumentedTest, RulesAndNumbersHoldOverThreads) {
  constexpr int kThreads = 4;
  constexpr int kEach = 400;
  device_->FailNth(kThreads * kEach / 2, Internal("injected"));
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach / 2; ++i) {
        const Result<EventHandle> event = device_->CreateEvent({});
        if (!event.ok() || !device_->DestroyEvent(*event).ok()) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures.load(), 1);
  const bool creation_failed = device_->failed() == Primitive::kCreateEvent;
  EXPECT_EQ(device_->calls(), kThreads * kEach - (creation_failed ? 1U : 0U));
  EXPECT_EQ(device_->Live().size(), creation_failed ? 0U : 1U) << Live();
}

TEST_F(InstrumentedTest, AWrapperOfAWrapperCountsItsOwn) {
  const std::shared_ptr<InstrumentedDevice> outer = Instrumented(device_);
  EXPECT_TRUE(IsOk(outer->GetMemoryInfo()));
  EXPECT_TRUE(IsOk(device_->GetMemoryInfo()));
  EXPECT_EQ(outer->calls(), 1U);
  EXPECT_EQ(device_->calls(), 2U);
  EXPECT_EQ(&outer->Innermost(), inner_.get());
}

}  // namespace
}  // namespace keel::hal
