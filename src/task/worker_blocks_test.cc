#include "task/worker_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace keel::task {
namespace {

using ::testing::HasSubstr;

constexpr DeviceAddress At(std::uint64_t address) { return DeviceAddress(address); }

TEST(WorkerBlocksTest, FindsTheBlockAroundARange) {
  WorkerBlocks blocks;
  const auto first = blocks.Add(1, At(0x1000), 256_B);
  const auto second = blocks.Add(1, At(0x1100), 256_B);
  EXPECT_EQ(blocks.Find(At(0x1000), 256_B), first);
  EXPECT_EQ(blocks.Find(At(0x10ff), 1_B), first);
  EXPECT_EQ(blocks.Find(At(0x1100), 1_B), second);
  EXPECT_EQ(blocks.Find(At(0x10ff), 2_B), nullptr) << "in two blocks";
  EXPECT_EQ(blocks.Find(At(0x0fff), 1_B), nullptr);
  EXPECT_EQ(blocks.Find(At(0x1200), 1_B), nullptr);
  EXPECT_EQ(blocks.FindAt(At(0x1100)), second);
  EXPECT_EQ(blocks.FindAt(At(0x1101)), nullptr);
  blocks.Remove(*first);
  EXPECT_EQ(blocks.Find(At(0x1000), 1_B), nullptr);
}

TEST(WorkerBlocksTest, RegisteredMemoryMayNotOverlap) {
  WorkerBlocks blocks;
  blocks.Add(1, At(0x1000), 256_B);
  const Status overlap = blocks.AddRegistered(1, At(0x0f80), 129_B).status();
  EXPECT_EQ(overlap.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(overlap.message()), HasSubstr("overlap the 256 B at 0x1000"));
  EXPECT_TRUE(blocks.AddRegistered(1, At(0x0f80), 128_B).ok());
  EXPECT_TRUE(blocks.FindAt(At(0x0f80))->registered);
  EXPECT_EQ(blocks.AddRegistered(1, At(0x5000), 0_B).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(blocks.AddRegistered(1, At(~0ULL), 16_B).status().code(), StatusCode::kInvalidArgument);
}

TEST(WorkerBlocksTest, WhatWasLostSaysSoUntilSomethingElseIsThere) {
  WorkerBlocks blocks;
  const auto old = blocks.Add(3, At(0x1000), 256_B);
  blocks.Lose();
  const Status lost = blocks.Find(At(0x1010), 8_B)->Usable();
  EXPECT_EQ(lost.code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(lost.message()), HasSubstr("the 256 B at 0x1000 of worker 3 were lost"));
  const auto fresh = blocks.Add(3, At(0x1080), 16_B);
  EXPECT_EQ(blocks.Find(At(0x1080), 8_B), fresh);
  EXPECT_EQ(blocks.Find(At(0x1010), 8_B), nullptr);
  blocks.Remove(*old);
  EXPECT_EQ(blocks.FindAt(At(0x1080)), fresh) << "another's place is not taken away";
}

}  // namespace
}  // namespace keel::task
