// Memory that goes where it is needed: what moves, when, and at what cost in calls of the driver.
#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "memory/device_allocator_test.h"

namespace keel::memory {
namespace {

class ExpandableSourceTest : public DeviceAllocatorFixture {
 protected:
  // Of an allocator that may spend what it wants on fine handles from now on.
  void GiveTime() { now_ns_ += std::int64_t{1} << 50; }
  std::unique_ptr<DeviceAllocator> Make(AllocatorConfig config = {}) {
    return DeviceAllocatorFixture::Make(config);
  }
};

// A7
TEST_F(ExpandableSourceTest, ASegmentExpandsInOneRange) {
  const auto allocator = Make();
  std::vector<DeviceAddress> blocks;
  for (int i = 0; i < 20; ++i) blocks.push_back(Need(allocator->Allocate(16_MiB, s1())));
  EXPECT_EQ(device_->calls(Primitive::kReserveAddress), 1U);
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    EXPECT_EQ(blocks[i], blocks[i - 1] + 16_MiB);
  }
  const MemorySnapshot snapshot = allocator->Snapshot();
  ASSERT_EQ(snapshot.segments.size(), 1U);
  EXPECT_EQ(snapshot.segments[0].size, 320_MiB);
  EXPECT_TRUE(snapshot.segments[0].expandable);
  // And what is free at its end grows to what is asked for, without a new place.
  ASSERT_TRUE(IsOk(allocator->Free(blocks.back())));
  EXPECT_EQ(Need(allocator->Allocate(40_MiB, s1())), blocks.back());
  EXPECT_EQ(allocator->reserved(), 344_MiB);
}

TEST_F(ExpandableSourceTest, MemoryUnderHolesMovesToWhereItIsNeeded) {
  const auto allocator = Make();
  std::vector<DeviceAddress> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(Need(allocator->Allocate(16_MiB, s1())));
  const HeldStream held = Hold(s1());  // on the same stream, pending work does not matter
  for (int i = 0; i < 8; i += 2) ASSERT_TRUE(IsOk(allocator->Free(blocks[i])));
  device_->ResetCounts();
  const DeviceAddress large = Need(allocator->Allocate(64_MiB, s1()));
  EXPECT_EQ(allocator->reserved(), 128_MiB);
  EXPECT_EQ(allocator->Stats().pages_moved, 4);
  EXPECT_EQ(device_->calls(Primitive::kCreateMemory), 0U);
  EXPECT_EQ(device_->calls(Primitive::kMap), 4U);
  // A5
  EXPECT_EQ(device_->calls(Primitive::kUnmap), 0U);
  ASSERT_TRUE(IsOk(Fill(large, 64_MiB, 1, s1())));
  EXPECT_EQ(allocator->Check(), "");
}

// A5
TEST_F(ExpandableSourceTest, NothingIsUnmappedWhileWorkOnItIsPending) {
  const auto allocator = Make();
  std::vector<DeviceAddress> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(Need(allocator->Allocate(16_MiB, s1())));
  HeldStream held = Hold(s1());
  for (const DeviceAddress block : blocks) ASSERT_TRUE(IsOk(Fill(block, 16_MiB, 1, s1())));
  for (int i = 0; i < 8; i += 2) ASSERT_TRUE(IsOk(allocator->Free(blocks[i])));
  device_->ResetCounts();
  // Another stream gets none of it, the same stream does; nothing loses its mapping.
  const DeviceAddress other = Need(allocator->Allocate(64_MiB, s2()));
  EXPECT_EQ(allocator->reserved(), 192_MiB);
  EXPECT_EQ(allocator->Stats().pages_moved, 0);
  std::vector<DeviceAddress> more;
  for (int i = 0; i < 6; ++i) {
    more.push_back(Need(allocator->Allocate(Bytes((20 + i) << 20), s1())));
    ASSERT_TRUE(IsOk(Fill(more.back(), 1_MiB, 2, s1())));
    if (i % 2 == 1) {
      ASSERT_TRUE(IsOk(allocator->Free(more.back())));
    }
  }
  EXPECT_EQ(device_->calls(Primitive::kUnmap), 0U);
  EXPECT_EQ(device_->calls(Primitive::kReleaseMemory), 0U);
  ASSERT_TRUE(IsOk(Fill(other, 64_MiB, 3, s2())));
  ASSERT_TRUE(IsOk(second_.Synchronize()));
  held.Release();
  ASSERT_TRUE(IsOk(first_.Synchronize()));
  ASSERT_TRUE(IsOk(device_->Health()));
  EXPECT_TRUE(Holds(other, 64_MiB, 3, s2()));
  EXPECT_EQ(allocator->Check(), "");
}

TEST_F(ExpandableSourceTest, AHandleComesBackWithoutACallOfTheDriver) {
  const auto allocator = Make();
  std::vector<DeviceAddress> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(Need(allocator->Allocate(16_MiB, s1())));
  const auto move_there_and_back = [&] {
    for (int i = 0; i < 8; i += 2) ASSERT_TRUE(IsOk(allocator->Free(blocks[i])));
    const DeviceAddress large = Need(allocator->Allocate(64_MiB, s1()));
    ASSERT_TRUE(IsOk(allocator->Free(large)));
    for (int i = 0; i < 8; i += 2) blocks[i] = Need(allocator->Allocate(16_MiB, s1()));
    ASSERT_TRUE(IsOk(first_.Synchronize()));
  };
  move_there_and_back();
  move_there_and_back();
  device_->ResetCounts();
  for (int i = 0; i < 5; ++i) move_there_and_back();
  EXPECT_EQ(MemoryCalls(), 0U);
  EXPECT_EQ(allocator->reserved(), 128_MiB);
  EXPECT_EQ(allocator->Check(), "");
}

// One iteration of training.
struct Pattern {
  const char* name;
  std::vector<std::int64_t> kib;  // activations, in order; freed in reverse, gradients between
};

class SteadyLoopTest : public ExpandableSourceTest, public ::testing::WithParamInterface<int> {};

TEST_P(SteadyLoopTest, NoDriverCallForMemoryAfterTheSecondIteration) {
  static const Pattern kPatterns[] = {
      {"activations", {4096, 4096, 16384, 16384, 300, 300, 65536, 2048, 12}},
      {"uneven", {5000, 1234, 70001, 33333, 777, 15, 9000, 41000}},
      {"growing", {1024, 2048, 4096, 8192, 16384, 32768, 65536}},
      {"shrinking", {90000, 45000, 22000, 11000, 5500, 2700, 1300}},
  };
  const Pattern& pattern = kPatterns[GetParam() / 2];
  const bool two_streams = GetParam() % 2 != 0;
  SCOPED_TRACE(std::string(pattern.name) + (two_streams ? ", two streams" : ""));
  const auto allocator = Make();
  // Weights, which stay.
  for (const Bytes size : {3_MiB, 50_MiB, 700_KiB}) Need(allocator->Allocate(size, s1()));
  const auto iteration = [&] {
    // The host runs ahead: how far the second stream is must not make iterations differ.
    std::optional<HeldStream> held;
    if (two_streams) held.emplace(*inner_, s1());
    std::vector<DeviceAddress> live;
    for (std::size_t i = 0; i < pattern.kib.size(); ++i) {
      const hal::StreamHandle stream = two_streams && i % 3 == 2 ? s2() : s1();
      live.push_back(Need(allocator->Allocate(Bytes(pattern.kib[i] << 10), stream)));
      ASSERT_TRUE(IsOk(Fill(live.back(), 512_B, 1, stream)));
      if (stream == s2()) {
        ASSERT_TRUE(IsOk(allocator->RecordUse(live.back(), s1())));
      }
    }
    for (std::size_t i = live.size(); i-- > 0;) {
      const Bytes gradient(pattern.kib[i] << 10);
      const DeviceAddress temporary = Need(allocator->Allocate(gradient, s1()));
      ASSERT_TRUE(IsOk(Fill(temporary, 512_B, 1, s1())));
      ASSERT_TRUE(IsOk(allocator->Free(live[i])));
      ASSERT_TRUE(IsOk(allocator->Free(temporary)));
    }
    // The host reads the loss.
    held.reset();
    ASSERT_TRUE(IsOk(first_.Synchronize()));
    ASSERT_TRUE(IsOk(second_.Synchronize()));
  };
  iteration();
  iteration();
  const Bytes reserved = allocator->reserved();
  device_->ResetCounts();
  for (int i = 0; i < 10; ++i) iteration();
  EXPECT_EQ(MemoryCalls(), 0U);
  EXPECT_EQ(allocator->reserved(), reserved);
  EXPECT_EQ(allocator->Check(), "");
}
INSTANTIATE_TEST_SUITE_P(Patterns, SteadyLoopTest, ::testing::Range(0, 8));

// A10
TEST_F(ExpandableSourceTest, AGrowthThatFailsAtAnyStepGivesBackWhatItTook) {
  for (const Primitive step : {Primitive::kReserveAddress, Primitive::kCreateMemory,
                               Primitive::kMap, Primitive::kSetAccess}) {
    for (std::uint64_t n = 1; n <= 4; ++n) {
      SCOPED_TRACE(std::string(PrimitiveName(step)) + " " + std::to_string(n));
      auto allocator = Make();
      const DeviceAddress live = Need(allocator->Allocate(16_MiB, s1()));
      ASSERT_TRUE(IsOk(Fill(live, 16_MiB, 7, s1())));
      const Bytes before = allocator->reserved();
      device_->FailNth(step, n, Internal("injected"));
      // Four handles, and a range for the other stream.
      const Result<DeviceAddress> grown = allocator->Allocate(64_MiB, s2());
      if (device_->failed().has_value()) {
        EXPECT_EQ(grown.status().ToString(), "INTERNAL: injected");
        ASSERT_TRUE(IsOk(allocator->EmptyCache()));
        EXPECT_EQ(allocator->reserved(), before);
        EXPECT_EQ(controls().used(), before);
        EXPECT_EQ(allocator->Stats().allocation.all.current, 1);
      } else {
        EXPECT_TRUE(IsOk(grown));
      }
      device_->ClearRules();
      EXPECT_TRUE(IsOk(allocator->Allocate(64_MiB, s2())));
      EXPECT_TRUE(Holds(live, 64_KiB, 7, s1()));
      EXPECT_EQ(allocator->Check(), "");
      allocator.reset();
      ExpectNothingLeft();
    }
  }
}

TEST_F(ExpandableSourceTest, PinnedPagesStayAndListenersAreToldBeforeOthersLeave) {
  const auto allocator = Make();
  std::vector<DeviceAddress> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(Need(allocator->Allocate(16_MiB, s1())));
  std::vector<std::pair<DeviceAddress, Bytes>> told;
  std::uint64_t unmapped = 0;
  allocator->SetMoveListener([&](DeviceAddress address, Bytes size) {
    told.emplace_back(address, size);
    // Still there.
    EXPECT_TRUE(IsOk(inner_->GetAccess(address, inner_->id()))) << ToString(address);
    unmapped = device_->calls(Primitive::kUnmap);
  });
  ASSERT_TRUE(IsOk(allocator->Pin(blocks[0] + 5_MiB, 1_MiB)));
  EXPECT_EQ(allocator->Pin(blocks[3] + 16_MiB, 1_MiB).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(allocator->Pin(blocks[0], 0_B).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(allocator->Pin(blocks[0], Bytes(~std::uint64_t{0})).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(allocator->Unpin(blocks[1], 1_MiB).code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(IsOk(allocator->Free(blocks[0])));
  ASSERT_TRUE(IsOk(allocator->Free(blocks[2])));
  Need(allocator->Allocate(32_MiB, s1()));
  EXPECT_EQ(told, (std::vector<std::pair<DeviceAddress, Bytes>>{{blocks[2], 16_MiB}}));
  ASSERT_TRUE(IsOk(allocator->EmptyCache()));
  EXPECT_TRUE(IsOk(inner_->GetAccess(blocks[0], inner_->id())));
  ASSERT_TRUE(IsOk(allocator->Unpin(blocks[0] + 5_MiB, 1_MiB)));
  ASSERT_TRUE(IsOk(allocator->EmptyCache()));
  EXPECT_FALSE(inner_->GetAccess(blocks[0], inner_->id()).ok());
  EXPECT_EQ(told.size(), 2U);
  EXPECT_EQ(told.back().first, blocks[0]);
  EXPECT_LT(unmapped, device_->calls(Primitive::kUnmap));
}

TEST_F(ExpandableSourceTest, WithTimeToSpendHandlesAreAsSmallAsTheDeviceAllows) {
  const auto allocator = Make();
  GiveTime();
  Need(allocator->Allocate(16_MiB, s1()));
  EXPECT_EQ(device_->calls(Primitive::kCreateMemory), 8U);
}

struct Churned {
  std::uint64_t calls = 0;  // for memory, after it had time to settle
  Bytes reserved;
};

class ChurnTest : public ExpandableSourceTest {
 protected:
  // Random sizes without end: one block is freed and another allocated, and so much time passes.
  Churned Churn(std::int64_t pace_ns) {
    const auto allocator = Make();
    std::mt19937_64 random(3);
    const auto size = [&] { return Bytes(512 + random() % (2 << 20)); };
    std::vector<DeviceAddress> live(100);
    for (DeviceAddress& each : live) each = Need(allocator->Allocate(size(), s1()));
    const auto turn = [&](int count) {
      for (int i = 0; i < count; ++i) {
        DeviceAddress& each = live[random() % live.size()];
        EXPECT_TRUE(IsOk(allocator->Free(each)));
        each = Need(allocator->Allocate(size(), s1()));
        // So that what can move does not depend on how far the stream's thread happens to be.
        EXPECT_TRUE(IsOk(inner_->SynchronizeStream(s1(), Deadline::Never())));
        now_ns_ += pace_ns;
      }
    };
    turn(20'000);
    device_->ResetCounts();
    turn(20'000);
    EXPECT_EQ(allocator->Check(), "");
    return {MemoryCalls(), allocator->reserved()};
  }
};

TEST_F(ChurnTest, WhoWouldMoveMemoryAllTheTimeGetsALittleMoreInstead) {
  // A program that does something else meanwhile has time to move what it has.
  const Churned slow = Churn(10'000'000);
  const Churned fast = Churn(100);
  EXPECT_GT(slow.calls, 30U);
  EXPECT_LT(fast.calls, slow.calls / 4);
  EXPECT_LT(fast.reserved, slow.reserved + slow.reserved / 4);
}

}  // namespace
}  // namespace keel::memory
