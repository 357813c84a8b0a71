#include "task/dependencies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace keel::task {
namespace {

using ::testing::Test;

Touch Reads(std::uint64_t begin, std::uint64_t end, Space space = 0) {
  return {space, begin, end, false};
}
Touch Writes(std::uint64_t begin, std::uint64_t end, Space space = 0) {
  return {space, begin, end, true};
}

class DependenciesTest : public Test {
 protected:
  TaskKey Add(std::vector<Touch> touches) {
    const TaskKey task = keys_.Take();
    dependencies_.Add(task, touches, waits_for_);
    return task;
  }
  std::vector<TaskKey> Sorted(std::vector<TaskKey> tasks) {
    std::sort(tasks.begin(), tasks.end());
    return tasks;
  }

  TaskKeys keys_;
  Dependencies dependencies_{keys_, 3};
  std::vector<TaskKey> waits_for_;
};

TEST_F(DependenciesTest, AReaderWaitsForTheWriterAndAWriterForTheReaders) {
  const TaskKey writer = Add({Writes(0, 10)});
  EXPECT_TRUE(waits_for_.empty());
  const TaskKey first = Add({Reads(0, 10)});
  EXPECT_EQ(waits_for_, std::vector{writer});
  const TaskKey second = Add({Reads(0, 10)});
  EXPECT_EQ(waits_for_, std::vector{writer});
  Add({Writes(0, 10)});
  EXPECT_EQ(waits_for_, Sorted({writer, first, second}));
}

TEST_F(DependenciesTest, T7_ViewsAtOtherOffsetsAreSeen) {
  const TaskKey whole = Add({Writes(100, 200)});
  Add({Reads(150, 160)});
  EXPECT_EQ(waits_for_, std::vector{whole});
  Add({Reads(199, 250)});
  EXPECT_EQ(waits_for_, std::vector{whole});
  Add({Reads(200, 250)});
  EXPECT_TRUE(waits_for_.empty()) << "the end is not part of a range";
  Add({Reads(0, 100)});
  EXPECT_TRUE(waits_for_.empty());
}

TEST_F(DependenciesTest, T1_EqualAddressesOfTwoSpacesAreDifferentBytes) {
  const TaskKey host = Add({Writes(0, 10, 0)});
  const TaskKey one = Add({Writes(0, 10, 1)});
  EXPECT_TRUE(waits_for_.empty());
  Add({Reads(0, 10, 2)});
  EXPECT_TRUE(waits_for_.empty());
  Add({Reads(5, 6, 1), Reads(5, 6, 0)});
  EXPECT_EQ(waits_for_, Sorted({host, one}));
}

TEST_F(DependenciesTest, TasksThatAreDoneAreNotWaitedForEvenIfTheirSlotIsTakenAgain) {
  const TaskKey writer = Add({Writes(0, 10)});
  keys_.Release(writer);
  const TaskKey reader = Add({Reads(0, 10)});
  EXPECT_EQ(TaskKeys::SlotOf(writer), TaskKeys::SlotOf(reader));
  EXPECT_TRUE(waits_for_.empty());
}

TEST_F(DependenciesTest, ATaskNeverWaitsForItself) {
  Add({Reads(0, 10), Reads(5, 15), Reads(0, 20)});
  EXPECT_TRUE(waits_for_.empty());
}

TEST_F(DependenciesTest, FindSaysWhatATaskWouldWaitForAndAddsNothing) {
  const TaskKey writer = Add({Writes(0, 10)});
  const TaskKey reader = Add({Reads(4, 6)});
  std::vector<TaskKey> found;
  dependencies_.Find(Reads(5, 50), found);
  EXPECT_EQ(found, std::vector{writer});
  dependencies_.Find(Writes(5, 50), found);
  EXPECT_EQ(found, Sorted({writer, reader}));
  dependencies_.Find(Writes(10, 50), found);
  EXPECT_TRUE(found.empty());
  Add({Writes(20, 30)});
  EXPECT_TRUE(waits_for_.empty());
}

TEST_F(DependenciesTest, AClearedSpaceKnowsNothing) {
  Add({Writes(0, 10, 1)});
  dependencies_.Clear(1);
  Add({Writes(0, 10, 1)});
  EXPECT_TRUE(waits_for_.empty());
}

TEST_F(DependenciesTest, AMillionTasksInARowHoldConstantMemory) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr std::uint64_t kTasks = 100'000;  // a sanitizer takes long for them
#else
  constexpr std::uint64_t kTasks = 1'000'000;
#endif
  for (std::uint64_t i = 0; i < kTasks; ++i) {
    // Ever new places, and one that everybody reads.
    const TaskKey task = Add({Reads(0, 8), Writes(100 + i * 16, 100 + i * 16 + 8)});
    EXPECT_TRUE(waits_for_.empty());
    keys_.Release(task);
    ASSERT_LE(dependencies_.segments(), 64U);
    ASSERT_LE(dependencies_.entries(), 128U);
  }
  EXPECT_EQ(keys_.slots(), 1U);
}

TEST_F(DependenciesTest, SplitSegmentsShareTheirReaders) {
  std::vector<TaskKey> readers;
  for (int i = 0; i < 2000; ++i) readers.push_back(Add({Reads(0, 1'000'000)}));
  for (std::uint64_t i = 0; i < 2000; ++i) readers.push_back(Add({Reads(i * 100, i * 100 + 50)}));
  EXPECT_GE(dependencies_.segments(), 4000U);
  EXPECT_LE(dependencies_.entries(), 3U * 2000) << "and not 2000 for each segment";
  Add({Writes(0, 1'000'000)});
  EXPECT_EQ(waits_for_, Sorted(readers));
}

TEST_F(DependenciesTest, AStairOfReadersIsForgotten) {
  std::vector<TaskKey> readers;
  for (std::uint64_t i = 0; i < 20'000; ++i) readers.push_back(Add({Reads(0, 40'000 - i)}));
  EXPECT_LE(dependencies_.entries(), 2U * 20'000);
  for (std::size_t i = 0; i < readers.size(); ++i) {
    if (i % 1000 != 0) keys_.Release(readers[i]);
  }
  // Until the next sweep.
  std::uint64_t place = 100'000;
  for (std::size_t before = 0; dependencies_.segments() > before; place += 2) {
    before = dependencies_.segments();
    keys_.Release(Add({Writes(place, place + 1)}));
  }
  EXPECT_LE(dependencies_.entries(), 50U);
  std::vector<TaskKey> left;
  for (std::size_t i = 0; i < readers.size(); i += 1000) left.push_back(readers[i]);
  std::vector<TaskKey> found;
  dependencies_.Find(Writes(0, 40'000), found);
  EXPECT_EQ(found, Sorted(left));
  Add({Writes(0, 1)});
  EXPECT_EQ(waits_for_, Sorted(left));
}

// The same by comparing with every earlier task, over random programs.
TEST_F(DependenciesTest, WaitsForWhatAComparisonOfAllPairsOrders) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    TaskKeys keys;
    Dependencies dependencies(keys, 3);
    struct Earlier {
      TaskKey key;
      std::vector<Touch> touches;
      std::set<TaskKey> before;  // everything that is ordered before it, directly or not
    };
    std::vector<Earlier> earlier;
    const std::uint64_t length = seed % 2 == 0 ? 64 : 2000;
    for (int step = 0; step < 400; ++step) {
      Earlier task{keys.Take(), {}, {}};
      const std::size_t count = random() % 4;
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t begin = random() % length;
        const std::uint64_t end = begin + random() % (length / 4);
        const Touch touch{static_cast<Space>(random() % 3), begin, end, random() % 3 == 0};
        // As Arguments::Check() has it: what is written overlaps nothing of the same task.
        const bool clash = std::any_of(task.touches.begin(), task.touches.end(), [&](Touch other) {
          return other.space == touch.space && (other.writes || touch.writes) &&
                 other.begin < touch.end && touch.begin < other.end;
        });
        if (!clash) task.touches.push_back(touch);
      }
      dependencies.Add(task.key, task.touches, waits_for_);
      EXPECT_EQ(std::set<TaskKey>(waits_for_.begin(), waits_for_.end()).size(), waits_for_.size());
      for (const TaskKey key : waits_for_) {
        const auto found = std::find_if(earlier.begin(), earlier.end(),
                                        [&](const Earlier& other) { return other.key == key; });
        ASSERT_NE(found, earlier.end()) << "a task that is done, or never was";
        task.before.insert(key);
        task.before.insert(found->before.begin(), found->before.end());
      }
      for (const Earlier& other : earlier) {
        bool conflict = false;
        for (const Touch& a : task.touches) {
          for (const Touch& b : other.touches) {
            conflict |= a.space == b.space && (a.writes || b.writes) &&
                        std::max(a.begin, b.begin) < std::min(a.end, b.end);
          }
        }
        const bool direct =
            std::find(waits_for_.begin(), waits_for_.end(), other.key) != waits_for_.end();
        EXPECT_TRUE(!conflict || task.before.count(other.key) == 1)
            << "seed " << seed << " step " << step << ": a conflict without an order";
        EXPECT_TRUE(conflict || !direct)
            << "seed " << seed << " step " << step << ": an order without a conflict";
      }
      earlier.push_back(task);
      // Some end, the oldest first more often than not. Only what waits for nothing may.
      while (earlier.size() > 24 || (!earlier.empty() && random() % 3 == 0)) {
        keys.Release(earlier.front().key);
        for (Earlier& other : earlier) other.before.erase(earlier.front().key);
        earlier.erase(earlier.begin());
      }
    }
  }
}

TEST(FindConflictTest, NamesARangeOfAnotherGroupThatOverlaps) {
  const auto conflict = [](std::vector<Touch> touches, std::vector<std::size_t> groups) {
    return FindConflict(touches, groups);
  };
  EXPECT_EQ(conflict({Writes(0, 10), Writes(10, 20)}, {0, 1}), 2U);
  EXPECT_EQ(conflict({Writes(0, 10), Writes(5, 20)}, {0, 1}), 1U);
  EXPECT_EQ(conflict({Writes(5, 20), Writes(0, 10)}, {0, 1}), 0U) << "whatever the order";
  EXPECT_EQ(conflict({Reads(0, 10), Reads(5, 20)}, {0, 1}), 2U);
  EXPECT_EQ(conflict({Writes(0, 10), Writes(5, 20)}, {0, 0}), 2U) << "of one member";
  EXPECT_EQ(conflict({Writes(0, 10, 1), Writes(5, 20, 2)}, {0, 1}), 2U);
}

TEST(FindConflictTest, AgreesWithAComparisonOfAllPairs) {
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<Touch> touches;
    std::vector<std::size_t> groups;
    for (std::size_t i = 0; i < 2 + random() % 5; ++i) {
      const std::uint64_t begin = random() % 12;
      touches.push_back(
          {static_cast<Space>(random() % 2), begin, begin + random() % 6, random() % 2 == 0});
      groups.push_back(random() % 3);
    }
    bool expected = false;
    for (std::size_t i = 0; i < touches.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const Touch& a = touches[i];
        const Touch& b = touches[j];
        expected |= groups[i] != groups[j] && a.space == b.space && (a.writes || b.writes) &&
                    std::max(a.begin, b.begin) < std::min(a.end, b.end);
      }
    }
    ASSERT_EQ(FindConflict(touches, groups) != touches.size(), expected) << "round " << round;
  }
}

}  // namespace
}  // namespace keel::task
