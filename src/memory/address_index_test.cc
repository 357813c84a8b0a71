#include "memory/address_index.h"

#include <gtest/gtest.h>

namespace keel::memory {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kBase = std::uint64_t{5} << 30;

Block BlockAt(std::uint64_t address, std::uint64_t size) {
  Block block;
  block.address = address;
  block.size = size;
  return block;
}

TEST(AddressIndex, KnowsNothingThatIsNotCovered) {
  const AddressIndex index;
  EXPECT_EQ(index.Find(kBase), nullptr);
  EXPECT_EQ(index.Find(kBase + 1), nullptr);
  EXPECT_EQ(index.Find(~std::uint64_t{0} - 511), nullptr);
}

// Of every class of sizes, at places where a coarser slot is another block's.
TEST(AddressIndex, FindsBlocksOfAllSizesSideBySide) {
  AddressIndex index;
  ASSERT_TRUE(index.Cover(kBase, 16 * kMiB).ok());
  Block blocks[] = {
      BlockAt(kBase, 512),
      BlockAt(kBase + 512, 1024),
      BlockAt(kBase + 64 * 1024, 512),
      BlockAt(kBase + 64 * 1024 + 512, 100 * 1024),
      BlockAt(kBase + 512 * 1024, 512 * 1024),
      BlockAt(kBase + kMiB, 2 * kMiB),
      BlockAt(kBase + 3 * kMiB, 512),
      BlockAt(kBase + 3 * kMiB + 512, kMiB + 512),
  };
  for (Block& block : blocks) index.Add(&block);
  for (Block& block : blocks) {
    EXPECT_EQ(index.Find(block.address), &block);
    EXPECT_EQ(index.Find(block.address + 1), nullptr);
  }
  EXPECT_EQ(index.Find(kBase + 1024), nullptr);
  EXPECT_EQ(index.Find(kBase + kMiB + 512), nullptr);
  EXPECT_EQ(index.Find(kBase + 2 * kMiB), nullptr);
  for (Block& block : blocks) {
    index.Remove(block);
    EXPECT_EQ(index.Find(block.address), nullptr);
  }
}

TEST(AddressIndex, WhatWasFoundSaysWhetherItIsStillSo) {
  AddressIndex index;
  ASSERT_TRUE(index.Cover(kBase, 4 * kMiB).ok());
  Block block = BlockAt(kBase + kMiB, 128 * 1024);
  index.Add(&block);
  const AddressIndex::Found found = index.FindPlace(block.address);
  EXPECT_EQ(found.block(), &block);
  EXPECT_TRUE(found.current());
  index.Remove(block);
  EXPECT_FALSE(found.current());
  Block another = BlockAt(block.address, block.size);
  index.Add(&another);
  EXPECT_FALSE(found.current());
  index.FindPlace(another.address).Remove();
  EXPECT_EQ(index.Find(another.address), nullptr);
}

}  // namespace
}  // namespace keel::memory
