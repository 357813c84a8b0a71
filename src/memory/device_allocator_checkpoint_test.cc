// The state of a pool and the way back to it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <thread>
#include <utility>

#include "keel/hal/graph.h"
#include "memory/device_allocator_test.h"

namespace keel::memory {
namespace {

class DeviceAllocatorCheckpointTest : public DeviceAllocatorTest {
 protected:
  void SetUp() override {
    allocator_ = Make();
    pool_ = allocator_->CreatePool();
    ASSERT_TRUE(IsOk(allocator_->BeginPool(pool_, nullptr)));
  }
  void TearDown() override {
    if (allocator_ != nullptr) {
      EXPECT_EQ(allocator_->Check(), "");
    }
  }
  DeviceAddress Block(Bytes size) { return Need(allocator_->Allocate(size, s1())); }
  void Free(DeviceAddress block) { ASSERT_TRUE(IsOk(allocator_->Free(block))); }
  std::vector<PoolBlock> State() { return Need(allocator_->PoolBlocks(pool_)); }
  std::vector<DeviceAddress> Restore(const std::vector<PoolBlock>& state) {
    return Need(allocator_->RestorePool(pool_, state));
  }
  // Where the live blocks are, and how large.
  using Places = std::map<DeviceAddress, std::pair<Bytes, Bytes>>;
  static Places PlacesOf(const std::vector<PoolBlock>& state) {
    Places places;
    for (const PoolBlock& each : state) places[each.address] = {each.size, each.requested};
    return places;
  }
  Places Now() { return PlacesOf(State()); }
  // Of live memory, without what was counted on the way.
  std::vector<std::int64_t> Live() {
    const telemetry::MemoryStats stats = allocator_->Stats();
    return {stats.allocation.all.current, stats.allocated_bytes.small_pool.current,
            stats.allocated_bytes.large_pool.current, stats.requested_bytes.all.current,
            stats.active.all.current};
  }

  std::unique_ptr<DeviceAllocator> allocator_;
  PoolId pool_ = 0;
};

TEST_P(DeviceAllocatorCheckpointTest, BlocksComeBackAtTheirAddressesAndOthersGo) {
  const DeviceAddress outside = Need(allocator_->Allocate(1_KiB, s1()));
  ASSERT_TRUE(IsOk(allocator_->Free(outside)));
  const DeviceAddress kept = Block(3_MiB);
  const DeviceAddress small = Block(1000_B);
  const DeviceAddress large = Block(5_MiB);
  const std::vector<PoolBlock> state = State();
  EXPECT_EQ(Now(),
            (Places{{kept, {3_MiB, 3_MiB}}, {small, {1_KiB, 1000_B}}, {large, {5_MiB, 5_MiB}}}));
  const std::vector<std::int64_t> live = Live();
  const Bytes held = allocator_->reserved();

  Free(small);
  Free(large);
  // Others are at their places, in other sizes.
  const DeviceAddress tiny = Block(100_B);
  const DeviceAddress wide = Block(4_MiB);
  ASSERT_EQ(tiny, small);
  ASSERT_EQ(wide, large);
  std::vector<DeviceAddress> before{kept, tiny, wide};
  std::sort(before.begin(), before.end());
  EXPECT_EQ(Restore(state), before);
  EXPECT_EQ(Now(), PlacesOf(state));
  EXPECT_EQ(Live(), live);
  EXPECT_EQ(allocator_->reserved(), held);
  // They are blocks like others.
  EXPECT_EQ(Need(allocator_->Find(small + 500_B)).requested, 1000_B);
  Free(small);
  EXPECT_EQ(allocator_->Free(small).code(), StatusCode::kInvalidArgument);
  Free(large);
  Free(kept);
  EXPECT_EQ(Now(), Places{});
}

TEST_P(DeviceAllocatorCheckpointTest, AnEmptyStateFreesEverything) {
  const std::vector<PoolBlock> state = State();
  EXPECT_TRUE(state.empty());
  Block(3_MiB);
  Block(512_B);
  EXPECT_EQ(Restore(state).size(), 2U);
  EXPECT_EQ(Now(), Places{});
  EXPECT_EQ(Live(), std::vector<std::int64_t>(5));
}

TEST_P(DeviceAllocatorCheckpointTest, BlocksOfOtherPoolsAreLeftAlone) {
  const std::vector<PoolBlock> state = State();
  ASSERT_TRUE(IsOk(allocator_->EndPool(pool_)));
  const DeviceAddress everybodys = Block(3_MiB);
  const PoolId other = allocator_->CreatePool();
  ASSERT_TRUE(IsOk(allocator_->BeginPool(other, nullptr)));
  const DeviceAddress others = Block(3_MiB);
  EXPECT_TRUE(Restore(state).empty());
  EXPECT_EQ(Need(allocator_->PoolBlocks(other)).size(), 1U);
  Free(everybodys);
  Free(others);
}

// What a tree of graphs does: the second and the third are recorded after the first, each into the
// memory that the first left free.
TEST_P(DeviceAllocatorCheckpointTest, GraphsThatGrewThePoolShareItsMemory) {
  const DeviceAddress trunk = Block(2_MiB);
  const std::vector<PoolBlock> state = State();
  const DeviceAddress left = Block(2_MiB);
  const std::vector<PoolBlock> with_left = State();
  Restore(state);
  const DeviceAddress right = Block(64_MiB);  // has to grow
  const std::vector<PoolBlock> with_right = State();
  for (int i = 0; i < 3; ++i) {
    Restore(with_left);
    EXPECT_EQ(Now(), PlacesOf(with_left));
    ASSERT_TRUE(IsOk(Fill(left, 64_KiB, 1, s1())));
    Restore(with_right);
    EXPECT_EQ(Now(), PlacesOf(with_right));
    ASSERT_TRUE(IsOk(Fill(right, 64_KiB, 2, s1())));
    EXPECT_TRUE(Holds(right, 64_KiB, 2, s1()));
  }
  Free(trunk);
  Free(right);
}

TEST_P(DeviceAllocatorCheckpointTest, WhatWasRecordedForABlockThatLeavesIsWaitedFor) {
  const DeviceAddress first = Block(3_MiB);
  const std::vector<PoolBlock> state = State();
  Free(first);
  const DeviceAddress second = Block(2_MiB);
  ASSERT_EQ(first, second);
  {
    HeldStream held = Hold(s2());
    ASSERT_TRUE(IsOk(Fill(second, 64_KiB, 1, s2())));
    ASSERT_TRUE(IsOk(allocator_->RecordUse(second, s2())));
    const std::uint64_t waits = device_->calls(Primitive::kSynchronizeEvent);
    std::atomic<bool> done = false;
    const std::jthread restoring([&] {
      Restore(state);
      done = true;
    });
    while (!done && device_->calls(Primitive::kSynchronizeEvent) == waits)
      std::this_thread::yield();
    EXPECT_FALSE(done);
    EXPECT_EQ(Now(), (Places{{second, {2_MiB, 2_MiB}}}));  // nothing changes before
    held.Release();
  }
  EXPECT_EQ(Now(), PlacesOf(state));
  EXPECT_TRUE(Holds(first, 64_KiB, 1, s1()));  // it was done before
  EXPECT_EQ(allocator_->Stats().pending_frees.current, 0);
}

TEST_P(DeviceAllocatorCheckpointTest, AFreedBlockThatAnotherStreamUsesIsWaitedFor) {
  const DeviceAddress block = Block(3_MiB);
  const std::vector<PoolBlock> state = State();
  ASSERT_TRUE(IsOk(allocator_->RecordUse(block, s2())));
  Free(block);
  ASSERT_EQ(allocator_->Stats().pending_frees.current, 1);
  EXPECT_TRUE(Restore(state).empty());
  EXPECT_EQ(Now(), PlacesOf(state));
}

TEST_P(DeviceAllocatorCheckpointTest, AStreamThatIsCapturedCannotBeWaitedForAndNothingChanges) {
  const DeviceAddress block = Block(3_MiB);
  const DeviceAddress pending = Block(1_KiB);
  const DeviceAddress other = Block(4_MiB);
  const std::vector<PoolBlock> state = State();
  {
    hal::Capture capture = Need(hal::Capture::Begin(inner_, s2(), hal::CaptureMode::kRelaxed));
    ASSERT_TRUE(IsOk(allocator_->RecordUse(pending, s2())));
    Free(pending);
    Free(other);
    const Places now = Now();
    const std::vector<std::int64_t> live = Live();
    // A freed block is in the way.
    EXPECT_EQ(allocator_->RestorePool(pool_, state).status().code(),
              StatusCode::kFailedPrecondition);
    EXPECT_EQ(Now(), now);
    // A block would have to leave.
    ASSERT_TRUE(IsOk(allocator_->RecordUse(block, s2())));
    EXPECT_EQ(allocator_->RestorePool(pool_, {}).status().code(), StatusCode::kFailedPrecondition);
    EXPECT_EQ(Now(), now);
    EXPECT_EQ(Live(), live);
    Need(capture.End());
  }
  EXPECT_EQ(Restore(state), std::vector{block});
  EXPECT_EQ(Now(), PlacesOf(state));
}

TEST_P(DeviceAllocatorCheckpointTest, TheHistoryHasWhatComesAndGoes) {
  telemetry::EventLog log;
  ASSERT_TRUE(IsOk(log.Enable({.capacity = 100})));
  allocator_ = Make(&log);
  pool_ = allocator_->CreatePool();
  ASSERT_TRUE(IsOk(allocator_->BeginPool(pool_, nullptr)));
  const DeviceAddress block = Block(3_MiB);
  const std::vector<PoolBlock> state = State();
  Free(block);
  Restore(state);
  Restore({});
  std::vector<telemetry::EventAction> actions;
  for (const telemetry::MemoryEvent& event : log.Read()) {
    if (event.address != block || event.size != 3_MiB) continue;
    actions.push_back(event.action);
  }
  using enum telemetry::EventAction;
  EXPECT_EQ(actions, (std::vector{kAlloc, kFreeRequested, kFreeCompleted, kAlloc, kFreeRequested,
                                  kFreeCompleted}));
}

TEST_P(DeviceAllocatorCheckpointTest, WhatIsNotOfThePoolIsRefused) {
  const DeviceAddress block = Block(3_MiB);
  const Places now = Now();
  const auto refused = [&](const std::vector<PoolBlock>& state) {
    EXPECT_EQ(Now(), now);
    return allocator_->RestorePool(pool_, state).status().code();
  };
  std::vector<PoolBlock> state = State();
  state[0].address = state[0].address + 1_GiB;
  EXPECT_EQ(refused(state), StatusCode::kInvalidArgument);
  state = State();
  state[0].size = 1_GiB;  // beyond the end
  EXPECT_EQ(refused(state), StatusCode::kInvalidArgument);
  state = State();
  state.push_back({.address = block + 1_MiB, .size = 1_MiB, .requested = 1_MiB});
  EXPECT_EQ(refused(state), StatusCode::kInvalidArgument);
  EXPECT_EQ(refused({{.address = block + 1_B, .size = 1_KiB, .requested = 1_KiB}}),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(refused({{.address = block, .size = 0_B}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(refused({{.address = block, .size = Bytes(~std::uint64_t{0} - 511)}}),
            StatusCode::kInvalidArgument);  // past the end of everything
  EXPECT_EQ(refused({{.address = block, .size = 1_KiB, .requested = 2_KiB}}),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Now(), now);

  state = State();
  EXPECT_EQ(allocator_->PoolBlocks(7).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(allocator_->RestorePool(7, state).status().code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(IsOk(allocator_->EndPool(pool_)));
  ASSERT_TRUE(IsOk(allocator_->ReleasePool(pool_)));
  EXPECT_EQ(allocator_->RestorePool(pool_, state).status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(allocator_->Find(block).ok());
}

// Any sequence of requests and frees, from any state to any other.
TEST_P(DeviceAllocatorCheckpointTest, EveryStateIsReachedFromEveryOther) {
  std::mt19937 random(7);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  std::vector<std::vector<PoolBlock>> states{State()};
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 20; ++i) {
      const std::vector<PoolBlock> now = State();
      if (!now.empty() && below(3) == 0) {
        Free(now[below(now.size())].address);
      } else {
        Block(Bytes(1 + below(below(4) == 0 ? 6 << 20 : 8 << 10)));
      }
    }
    if (below(2) == 0) states.push_back(State());
    const std::vector<PoolBlock>& state = states[below(states.size())];
    Restore(state);
    ASSERT_EQ(Now(), PlacesOf(state)) << "round " << round;
    ASSERT_EQ(allocator_->Check(), "");
    ASSERT_EQ(Live()[0], static_cast<std::int64_t>(state.size()));
  }
  Restore({});
  EXPECT_EQ(Live(), std::vector<std::int64_t>(5));
}

KEEL_WITH_BOTH_SOURCES(DeviceAllocatorCheckpointTest);

class DeviceAllocatorCheckpointModesTest : public DeviceAllocatorFixture {};

TEST_F(DeviceAllocatorCheckpointModesTest, ModesWithoutMemoryThatStaysRefuse) {
  for (const AllocatorConfig& config :
       {AllocatorConfig{.backend = AllocatorConfig::Backend::kPassthrough},
        AllocatorConfig{.debug = AllocatorConfig::Debug::kGuards}}) {
    const auto allocator = Make(config);
    const PoolId pool = allocator->CreatePool();
    EXPECT_EQ(allocator->PoolBlocks(pool).status().code(), StatusCode::kUnimplemented);
    EXPECT_EQ(allocator->RestorePool(pool, {}).status().code(), StatusCode::kUnimplemented);
  }
}

}  // namespace
}  // namespace keel::memory
