#include "keel/trace/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace keel::trace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SnapshotTest, NamesAreFoundAgain) {
  for (int i = 0; i <= static_cast<int>(Action::kOutOfMemory); ++i) {
    const auto action = static_cast<Action>(i);
    EXPECT_EQ(FindAction(ActionName(action)), action);
  }
  for (const BlockState state :
       {BlockState::kAllocated, BlockState::kPendingFree, BlockState::kInactive}) {
    EXPECT_EQ(FindBlockState(BlockStateName(state)), state);
  }
  EXPECT_EQ(FindBlockState("active_awaiting_free"), BlockState::kPendingFree);
  EXPECT_EQ(FindAction("defragment"), std::nullopt);
}

TEST(SnapshotTest, AnEventIsSmall) { EXPECT_LE(sizeof(Event), 48u); }

TEST(SnapshotTest, TheConfigurationIsFound) {
  Snapshot snapshot;
  EXPECT_EQ(Configuration(snapshot), "");
  snapshot.settings = {{"PYTORCH_CUDA_ALLOC_CONF", "old"},  // vendor-ok: PyTorch's name
                       {"PYTORCH_ALLOC_CONF", std::string()},
                       {"expandable_segments", true}};
  EXPECT_EQ(Configuration(snapshot), "old");
  snapshot.settings[1].value = "new";
  EXPECT_EQ(Configuration(snapshot), "new");
}

TEST(SnapshotInternerTest, EqualThingsAreOne) {
  Snapshot snapshot;
  {
    SnapshotInterner interner(snapshot);
    EXPECT_EQ(interner.Tag(""), 0u);
    EXPECT_EQ(interner.Tag("weights"), 1u);
    EXPECT_EQ(interner.Tag("activations"), 2u);
    EXPECT_EQ(interner.Tag("weights"), 1u);
    const std::uint32_t f = interner.Frame("f", "a.py", 1);
    EXPECT_NE(interner.Frame("f", "a.py", 2), f);
    EXPECT_NE(interner.Frame("a.py", "f", 1), f);
    EXPECT_EQ(interner.Frame("f", "a.py", 1), f);
    EXPECT_EQ(interner.Stack({}), 0u);
    EXPECT_EQ(interner.Stack(std::vector<std::uint32_t>{0, 1}), 1u);
    EXPECT_EQ(interner.Stack(std::vector<std::uint32_t>{1, 0}), 2u);
    EXPECT_EQ(interner.Stack(std::vector<std::uint32_t>{0, 1}), 1u);
  }
  // Another one goes on where this one ended.
  SnapshotInterner interner(snapshot);
  EXPECT_EQ(interner.Tag("activations"), 2u);
  EXPECT_EQ(interner.Tag("gradients"), 3u);
  EXPECT_EQ(interner.Frame("f", "a.py", 2), 1u);
  EXPECT_EQ(interner.Stack(std::vector<std::uint32_t>{1, 0}), 2u);
  EXPECT_THAT(snapshot.tags, ElementsAre("", "weights", "activations", "gradients"));
  EXPECT_EQ(snapshot.frames.size(), 3u);
  EXPECT_THAT(snapshot.stacks, ElementsAre(ElementsAre(), ElementsAre(0, 1), ElementsAre(1, 0)));
}

Snapshot TwoBlocks() {
  Snapshot snapshot;
  snapshot.devices = {{Event{}}};
  snapshot.segments = {
      {.address = 4096,
       .total_size = 300,
       .blocks = {{.address = 4096, .size = 100}, {.address = 4196, .size = 200}}}};
  return snapshot;
}

std::string CheckOf(const Snapshot& snapshot) { return CheckSnapshot(snapshot).ToString(); }

TEST(CheckSnapshotTest, WhatIsBrokenIsNamed) {
  const Snapshot good = TwoBlocks();
  EXPECT_EQ(CheckOf(good), "OK");

  Snapshot bad = good;
  bad.segments[0].blocks.pop_back();
  EXPECT_THAT(CheckOf(bad),
              HasSubstr("segment 0: its blocks do not tile it: they cover 100 of 300"));
  bad = good;
  bad.segments[0].blocks[1].address += 8;
  EXPECT_THAT(CheckOf(bad), HasSubstr("200 bytes at 0x106c, where 0x1064 and at most 200 are due"));
  bad = good;
  bad.segments[0].blocks[1].size = UINT64_MAX;
  EXPECT_THAT(CheckOf(bad), HasSubstr("do not tile"));
  bad = good;
  bad.segments[0].blocks[1].tag = 1;
  EXPECT_THAT(CheckOf(bad), HasSubstr("segment 0: there is no tag 1"));
  bad = good;
  bad.segments[0].device = -1;
  EXPECT_THAT(CheckOf(bad), HasSubstr("no device -1"));
  bad = good;
  bad.devices[0][0].stack = 1;
  EXPECT_THAT(CheckOf(bad), HasSubstr("device 0, event 0: there is no stack 1"));
  bad = good;
  bad.stacks.push_back({7});
  EXPECT_THAT(CheckOf(bad), HasSubstr("stack 1: there is no frame 7"));
  bad = good;
  bad.devices.resize(2000);
  EXPECT_THAT(CheckOf(bad), HasSubstr("2000 devices"));
  // Without blocks there is nothing to draw.
  bad = good;
  bad.segments[0].blocks.clear();
  EXPECT_THAT(CheckOf(bad), HasSubstr("cover 0 of 300"));
}

}  // namespace
}  // namespace keel::trace
