#include "task/fixed_queue.h"

#include <gtest/gtest.h>

#include <memory>

namespace keel::task {
namespace {

TEST(FixedQueueTest, IsInOrderAcrossTheEnd) {
  FixedQueue<int, 4> queue;
  for (int i = 0; i < 4; ++i) queue.Append() = i;
  EXPECT_TRUE(queue.full());
  EXPECT_EQ(queue.pop_front(), 0);
  EXPECT_EQ(queue.pop_front(), 1);
  queue.Append() = 4;
  queue.Append() = 5;
  EXPECT_TRUE(queue.full());
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(queue[i], static_cast<int>(i) + 2);
  for (int i = 2; i < 6; ++i) EXPECT_EQ(queue.pop_front(), i);
  EXPECT_TRUE(queue.empty());
}

TEST(FixedQueueTest, WhatIsTakenFromTheMiddleLeavesTheOthersInOrder) {
  FixedQueue<int, 4> queue;
  for (int i = 0; i < 3; ++i) queue.Append() = -1;
  queue.clear();  // so that it lies across the end
  for (int i = 0; i < 4; ++i) queue.Append() = i;
  EXPECT_EQ(queue.Take(2), 2);
  EXPECT_EQ(queue.Take(0), 0);
  EXPECT_EQ(queue.Take(1), 3);
  EXPECT_EQ(queue.size(), 1U);
  EXPECT_EQ(queue.front(), 1);
}

TEST(FixedQueueTest, DropsTheFirstAcrossTheEnd) {
  FixedQueue<int, 4> queue;
  for (int i = 0; i < 3; ++i) queue.Append() = -1;
  queue.Drop(0);
  queue.Drop(3);
  EXPECT_TRUE(queue.empty());
  for (int i = 0; i < 4; ++i) queue.Append() = i;
  queue.Drop(3);
  EXPECT_EQ(queue.size(), 1U);
  EXPECT_EQ(queue.front(), 3);
}

TEST(FixedQueueTest, KeepsNothingOfWhatHasLeft) {
  const auto element = std::make_shared<int>(1);
  FixedQueue<std::shared_ptr<int>, 4> queue;
  for (int i = 0; i < 3; ++i) queue.Append() = element;
  EXPECT_EQ(queue.pop_front(), element);
  EXPECT_EQ(element.use_count(), 3);
  queue.clear();
  EXPECT_EQ(element.use_count(), 1);
}

}  // namespace
}  // namespace keel::task
