#include "keel/trace/groups.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace keel::trace {
namespace {

class GroupsTest : public ::testing::Test {
 protected:
  std::uint32_t Stack(const std::vector<Frame>& frames) {
    SnapshotInterner interner(snapshot_);
    std::vector<std::uint32_t> numbers;
    for (const Frame& frame : frames) {
      numbers.push_back(interner.Frame(frame.function, frame.file, frame.line));
    }
    return interner.Stack(numbers);
  }
  std::string NameOf(const Allocation& allocation) {
    Grouping grouping(snapshot_);
    return grouping.Name(grouping.Find(allocation));
  }

  Snapshot snapshot_;
};

TEST_F(GroupsTest, TheProgramsOwnFrameTellsMost) {
  const Frame native{"at::native::empty", "??", 0};
  const Frame unknown{"??", "??", 0};
  const Frame library{"conv2d", "/usr/lib/python3/dist-packages/torch/nn/conv.py", 460};
  const Frame model{"forward", "/home/me/model.py", 42};
  const Frame train{"main", "/home/me/train.py", 7};
  EXPECT_EQ(NameOf({.stack = Stack({unknown, native, library, model, train})}),
            "model.py:42 forward");
  EXPECT_EQ(NameOf({.stack = Stack({unknown, native, library})}), "conv.py:460 conv2d");
  EXPECT_EQ(NameOf({.stack = Stack({unknown, native})}), "at::native::empty");
  EXPECT_EQ(NameOf({.stack = Stack({{"", "/home/me/x.py", 0}})}), "x.py");
}

TEST_F(GroupsTest, WhatIsInstalledIsNotTheProgramsOwn) {
  const Frame model{"forward", "/home/me/model.py", 42};
  for (const char* const path : {"/home/me/env/site-packages/lib.py", "/opt/dist-packages/lib.py",
                                 "/opt/lib/python3.11/lib.py"}) {
    EXPECT_EQ(NameOf({.stack = Stack({{"call", path, 1}, model})}), "model.py:42 forward") << path;
  }
  // Of several that are, the innermost.
  EXPECT_EQ(NameOf({.stack = Stack({{"inner", "/opt/dist-packages/lib.py", 1},
                                    {"outer", "/opt/dist-packages/lib.py", 2}})}),
            "lib.py:1 inner");
}

TEST_F(GroupsTest, ThenTheTagThenTheSize) {
  const std::uint32_t nothing = Stack({{"??", "??", 0}});
  const std::uint32_t tag = SnapshotInterner(snapshot_).Tag("kv cache");
  EXPECT_EQ(NameOf({.size = 5, .stack = nothing, .tag = tag}), "kv cache");
  EXPECT_EQ(NameOf({.size = 16 << 20, .stack = nothing}), "16 MiB");
  EXPECT_EQ(NameOf({.size = (16 << 20) + 1}), "16 MiB (16777217 bytes)");
  Grouping grouping(snapshot_);
  EXPECT_EQ(grouping.kind(grouping.Find({.size = 5, .tag = tag})), GroupKind::kTag);
  EXPECT_EQ(grouping.kind(grouping.Find({.size = 5})), GroupKind::kSize);
  EXPECT_EQ(grouping.size(), 2u);
}

TEST_F(GroupsTest, SharesOfAMomentLargestFirst) {
  Timeline timeline;
  timeline.points.resize(10);
  timeline.allocations = {{.size = 100, .start = 0}, {.size = 300, .start = 1, .end = 5},
                          {.size = 100, .start = 2}, {.size = 900, .start = 2, .end = 4},
                          {.size = 200, .start = 3}, {.size = 700, .start = 5}};
  Grouping grouping(snapshot_);
  const std::vector<GroupShare> shares = GroupsAt(timeline, 4, grouping);
  ASSERT_EQ(shares.size(), 3u);
  EXPECT_EQ(grouping.Name(shares[0].group), "300 B");
  EXPECT_EQ(shares[0].bytes, 300u);
  // Two of equal size: the one that came first.
  EXPECT_EQ(grouping.Name(shares[1].group), "100 B");
  EXPECT_EQ(shares[1].bytes, 200u);
  EXPECT_EQ(shares[1].blocks, 2u);
  EXPECT_EQ(shares[1].largest, 100u);
  EXPECT_EQ(grouping.Name(shares[2].group), "200 B");
}

TEST_F(GroupsTest, AShareNamesItsLargestBlock) {
  const std::uint32_t tag = SnapshotInterner(snapshot_).Tag("t");
  Timeline timeline;
  timeline.points.resize(1);
  timeline.allocations = {{.size = 100, .tag = tag}, {.size = 50, .tag = tag}};
  Grouping grouping(snapshot_);
  const GroupShare share = GroupsAt(timeline, 0, grouping).at(0);
  EXPECT_EQ(share.bytes, 150u);
  EXPECT_EQ(share.blocks, 2u);
  EXPECT_EQ(share.largest, 100u);
}

TEST_F(GroupsTest, NumbersThatDoNotFitAreCut) {
  const std::uint32_t tag = SnapshotInterner(snapshot_).Tag("t");
  Timeline timeline;
  timeline.points.resize(1);
  timeline.allocations = {{.size = UINT64_MAX, .tag = tag}, {.size = 5, .tag = tag}};
  Grouping grouping(snapshot_);
  EXPECT_EQ(GroupsAt(timeline, 0, grouping).at(0).bytes, UINT64_MAX);
}

}  // namespace
}  // namespace keel::trace
