// Every call of the driver may fail, and nothing leaks: a scenario that takes every way through the
// allocator is run once for each of its calls, with that call failing.
#include <gtest/gtest.h>

#include <optional>

#include "memory/device_allocator_test.h"

namespace keel::memory {
namespace {

class DeviceAllocatorFaultTest : public DeviceAllocatorTest {
 protected:
  // Grows, moves, waits for other streams, keeps a pool, trims, meets the limit, ends. The first
  // error ends it. Nothing that is live is lost on the way.
  Status Scenario();
  Status Check(DeviceAllocator& allocator, std::int64_t live) {
    if (std::string wrong = allocator.Check(); !wrong.empty()) return FailedPrecondition(wrong);
    const std::int64_t blocks = allocator.Stats().allocation.all.current;
    if (blocks != live) return FailedPrecondition("live blocks: " + std::to_string(blocks));
    return OkStatus();
  }
};

Status DeviceAllocatorFaultTest::Scenario() {
  AllocatorConfig config = Config();
  config.limit = 160_MiB;
  KEEL_ASSIGN(const auto allocator,
              DeviceAllocator::Create(
                  device_, {.config = config, .now_ns = [this] { return now_ns_.load(); }}));
  std::vector<DeviceAddress> blocks;
  for (int i = 0; i < 4; ++i) {
    KEEL_ASSIGN(const DeviceAddress block, allocator->Allocate(16_MiB, s1()));
    blocks.push_back(block);
    KEEL_TRY(Fill(block, 4_KiB, 1, s1()));
  }
  KEEL_TRY(Check(*allocator, 4));
  KEEL_TRY(allocator->Free(blocks[0]));
  KEEL_TRY(allocator->Free(blocks[2]));
  // Moves on the same stream, and comes back.
  KEEL_ASSIGN(const DeviceAddress moved, allocator->Allocate(40_MiB, s1()));
  KEEL_TRY(Fill(moved, 4_KiB, 2, s1()));
  KEEL_TRY(allocator->Free(moved));
  KEEL_ASSIGN(blocks[0], allocator->Allocate(16_MiB, s1()));
  // Is used by another stream when it is freed: elsewhere in it, because nothing orders the two.
  KEEL_TRY(Fill(blocks[1] + 4_KiB, 4_KiB, 3, s2()));
  KEEL_TRY(allocator->RecordUse(blocks[1], s2()));
  KEEL_TRY(allocator->Free(blocks[1]));
  KEEL_TRY(Check(*allocator, 2));
  // A pool's, beside it.
  const PoolId pool = allocator->CreatePool();
  KEEL_TRY(allocator->BeginPool(pool, nullptr));
  KEEL_ASSIGN(const DeviceAddress graphs, allocator->Allocate(20_MiB, s1()));
  KEEL_TRY(allocator->EndPool(pool));
  KEEL_TRY(allocator->Free(graphs));
  KEEL_TRY(allocator->ReleasePool(pool));
  // Needs what the other streams have: everything that is free.
  KEEL_ASSIGN(const DeviceAddress all, allocator->Allocate(100_MiB, s2()));
  KEEL_TRY(Fill(all, 4_KiB, 4, s2()));
  KEEL_TRY(Check(*allocator, 3));
  const Status full = allocator->Allocate(100_MiB, s1()).status();
  if (full.code() != StatusCode::kResourceExhausted) {
    return full.ok() ? FailedPrecondition("the limit was not met") : full;
  }
  KEEL_TRY(Check(*allocator, 3));
  KEEL_TRY(allocator->Free(all));
  KEEL_TRY(allocator->Trim(40_MiB));
  KEEL_TRY(allocator->ForgetStream(s2()));
  KEEL_TRY(Check(*allocator, 2));
  KEEL_TRY(allocator->Free(blocks[0]));
  KEEL_TRY(allocator->Free(blocks[3]));
  return allocator->EmptyCache();
}

TEST_P(DeviceAllocatorFaultTest, TheScenarioMakesEveryKindOfCall) {
  ASSERT_TRUE(IsOk(Scenario()));
  std::vector<Primitive> expected{Primitive::kCreateEvent,  Primitive::kRecordEvent,
                                  Primitive::kQueryEvent,   Primitive::kSynchronizeEvent,
                                  Primitive::kDestroyEvent, Primitive::kGetCaptureState};
  const std::vector<Primitive> memory =
      expandable() ? std::vector{Primitive::kReserveAddress,
                                 Primitive::kFreeAddress,
                                 Primitive::kCreateMemory,
                                 Primitive::kReleaseMemory,
                                 Primitive::kMap,
                                 Primitive::kUnmap,
                                 Primitive::kSetAccess}
                   : std::vector{Primitive::kAllocatePlain, Primitive::kFreePlain};
  expected.insert(expected.end(), memory.begin(), memory.end());
  for (const Primitive each : expected) EXPECT_GT(device_->calls(each), 0U) << PrimitiveName(each);
  ExpectNothingLeft();
}

TEST_P(DeviceAllocatorFaultTest, EveryCallMayFailAndNothingLeaks) {
  for (const Status& injected : {Internal("injected"), ResourceExhausted("injected")}) {
    ASSERT_TRUE(IsOk(Scenario()));
    device_->ResetCounts();
    ASSERT_TRUE(IsOk(Scenario()));
    const std::uint64_t calls = device_->calls();
    for (std::uint64_t k = 1; k <= calls && !HasFailure(); ++k) {
      device_->ClearRules();
      device_->FailNth(k, injected);
      const Status status = Scenario();
      const std::optional<Primitive> failed = device_->failed();
      SCOPED_TRACE("call " + std::to_string(k) + ", " +
                   std::string(failed ? PrimitiveName(*failed) : "none"));
      // Typed: the driver's own, or what came of it; never a book that is wrong.
      if (!status.ok()) {
        EXPECT_TRUE(status.code() == injected.code() ||
                    status.code() == StatusCode::kResourceExhausted)
            << status.ToString();
      }
      EXPECT_TRUE(IsOk(device_->retries().Drain()));
      ASSERT_TRUE(IsOk(inner_->Health()));
      ASSERT_TRUE(IsOk(inner_->Synchronize(Deadline::Never())));
      ExpectNothingLeft();
      device_->ClearRules();
      EXPECT_TRUE(IsOk(Scenario())) << "after the failure";
      ExpectNothingLeft();
    }
  }
}

// The same allocator goes on after a failure of each call.
TEST_P(DeviceAllocatorFaultTest, AnAllocatorGoesOnAfterEveryFailure) {
  AllocatorConfig config = Config();
  config.limit = 120_MiB;
  const auto step = [&](DeviceAllocator& allocator, std::vector<DeviceAddress>& live) -> Status {
    for (const Bytes size : {40_MiB, 8_MiB, 100_KiB, 30_MiB}) {
      KEEL_ASSIGN(const DeviceAddress block, allocator.Allocate(size, s1()));
      live.push_back(block);
      KEEL_TRY(allocator.RecordUse(block, s2()));
    }
    while (!live.empty()) {
      const DeviceAddress block = live.back();
      live.pop_back();
      KEEL_TRY(allocator.Free(block));
    }
    KEEL_ASSIGN(const DeviceAddress other, allocator.Allocate(110_MiB, s2()));
    KEEL_TRY(allocator.Free(other));
    return allocator.Trim(20_MiB);
  };
  auto allocator = Make(config);
  std::vector<DeviceAddress> live;
  ASSERT_TRUE(IsOk(step(*allocator, live)));
  device_->ResetCounts();
  ASSERT_TRUE(IsOk(step(*allocator, live)));
  const std::uint64_t calls = device_->calls() + 4;
  for (std::uint64_t k = 1; k <= calls; ++k) {
    device_->ClearRules();
    device_->FailNth(k, Internal("injected"));
    static_cast<void>(step(*allocator, live).ok());
    const std::optional<Primitive> failed = device_->failed();
    SCOPED_TRACE("call " + std::to_string(k) + ", " +
                 std::string(failed ? PrimitiveName(*failed) : "none"));
    device_->ClearRules();
    for (const DeviceAddress block : live) {
      const Result<AllocationInfo> found = allocator->Find(block);
      if (found.ok()) {
        ASSERT_TRUE(IsOk(allocator->Free(block)));
      }
    }
    live.clear();
    const Status again = step(*allocator, live);
    ASSERT_TRUE(IsOk(again)) << "after the failure";
    // A free that reported a failure may have left its block: then it is still there to be freed.
    ASSERT_EQ(allocator->Check(), "");
    ASSERT_EQ(allocator->Stats().allocation.all.current, 0);
  }
  allocator.reset();
  EXPECT_TRUE(IsOk(device_->retries().Drain()));
  ExpectNothingLeft();
}

KEEL_WITH_BOTH_SOURCES(DeviceAllocatorFaultTest);

}  // namespace
}  // namespace keel::memory
