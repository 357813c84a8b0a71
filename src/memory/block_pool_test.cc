#include "memory/block_pool.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace keel::memory {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

TEST(BlockPool, AnEmptyPoolHasNothing) {
  BlockPool pool;
  EXPECT_EQ(pool.Allocate(512), nullptr);
  EXPECT_EQ(pool.Find(0), nullptr);
  EXPECT_EQ(pool.Largest(), nullptr);
  EXPECT_EQ(pool.Check(), "");
}

TEST(BlockPool, TakesTheLowestBytesOfABlockAndMergesThemBack) {
  BlockPool pool;
  pool.Add(4 * kMiB, kMiB);
  Block* const a = pool.Allocate(512);
  Block* const b = pool.Allocate(1024);
  Block* const c = pool.Allocate(512);
  EXPECT_EQ(a->address, 4 * kMiB);
  EXPECT_EQ(b->address, a->end());
  EXPECT_EQ(c->address, b->end());
  EXPECT_EQ(pool.free_bytes(), kMiB - 2048);
  pool.Free(a);
  pool.Free(c);
  EXPECT_EQ(pool.CountFree(), 2u);  // c met the rest, a meets b
  EXPECT_EQ(pool.Check(), "");
  Block* const all = pool.Free(b);
  EXPECT_EQ(all->address, 4 * kMiB);
  EXPECT_EQ(all->size, kMiB);
  EXPECT_EQ(pool.CountFree(), 1u);
  EXPECT_EQ(pool.Check(), "");
}

TEST(BlockPool, PrefersTheHoleThatFitsBest) {
  BlockPool pool;
  pool.Add(0, 64 * kMiB);
  Block* const large = pool.Allocate(8 * kMiB);
  Block* const wall_1 = pool.Allocate(512);
  Block* const small = pool.Allocate(3 * kMiB);
  Block* const wall_2 = pool.Allocate(512);
  const std::uint64_t small_at = small->address;
  const std::uint64_t large_at = large->address;
  pool.Free(small);
  pool.Free(large);
  EXPECT_EQ(pool.Allocate(2 * kMiB)->address, small_at);
  EXPECT_EQ(pool.Allocate(4 * kMiB)->address, large_at);
  pool.Free(wall_1);
  pool.Free(wall_2);
  EXPECT_EQ(pool.Check(), "");
}

TEST(BlockPool, AlignsOnRequest) {
  BlockPool pool;
  pool.Add(512, 8 * kMiB);
  Block* const block = pool.Allocate(kMiB, 2 * kMiB);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block->address, 2 * kMiB);
  EXPECT_EQ(block->size, kMiB);
  EXPECT_EQ(pool.Check(), "");
  pool.Free(block);
  EXPECT_EQ(pool.CountFree(), 1u);
}

TEST(BlockPool, SpansThatMeetBecomeOne) {
  BlockPool pool;
  pool.Add(0, kMiB);
  pool.Add(2 * kMiB, kMiB);
  EXPECT_EQ(pool.spans().size(), 2u);
  EXPECT_EQ(pool.Allocate(2 * kMiB), nullptr);
  Block* const all = pool.Add(kMiB, kMiB);
  EXPECT_EQ(pool.spans().size(), 1u);
  EXPECT_EQ(all->size, 3 * kMiB);
  EXPECT_EQ(pool.Check(), "");
}

TEST(BlockPool, SpansThatAreKeptApartNeverShareABlock) {
  BlockPool pool;
  pool.Add(0, kMiB, 0, BlockPool::Meeting::kApart);
  pool.Add(kMiB, kMiB, 0, BlockPool::Meeting::kApart);
  EXPECT_EQ(pool.spans().size(), 2u);
  EXPECT_EQ(pool.Allocate(kMiB + 512), nullptr);
  Block* const a = pool.Allocate(kMiB);
  Block* const b = pool.Allocate(kMiB);
  pool.Free(a);
  pool.Free(b);
  EXPECT_EQ(pool.CountFree(), 2u);
  EXPECT_EQ(pool.Check(), "");
}

TEST(BlockPool, ASpanFromWhichTheMiddleGoesFallsIntoTwo) {
  BlockPool pool;
  Block* const all = pool.Add(0, 4 * kMiB);
  pool.Remove(all, kMiB, kMiB);
  ASSERT_EQ(pool.spans().size(), 2u);
  EXPECT_EQ(pool.Check(), "");
  EXPECT_EQ(pool.bytes(), 3 * kMiB);
  EXPECT_EQ(pool.Find(kMiB), nullptr);
  EXPECT_EQ(pool.Find(2 * kMiB)->size, 2 * kMiB);
  pool.Remove(pool.Find(0), 0, kMiB);
  EXPECT_EQ(pool.spans().size(), 1u);
  pool.Remove(pool.Find(2 * kMiB), 2 * kMiB, kMiB);
  pool.Remove(pool.Find(3 * kMiB), 3 * kMiB, kMiB);
  EXPECT_EQ(pool.bytes(), 0u);
  EXPECT_EQ(pool.Check(), "");
}

TEST(BlockPool, FindsTheBlockOfAnInteriorAddress) {
  BlockPool pool;
  pool.Add(0, kMiB);
  Block* const a = pool.Allocate(4096);
  Block* const b = pool.Allocate(8192);
  EXPECT_EQ(pool.Find(4095), a);
  EXPECT_EQ(pool.Find(4096), b);
  EXPECT_EQ(pool.Find(4096 + 8191), b);
  EXPECT_TRUE(pool.Find(4096 + 8192)->free());
  EXPECT_EQ(pool.Find(kMiB), nullptr);
}

TEST(BlockPool, VisitsTheLargestFirst) {
  BlockPool pool;
  for (std::uint64_t i = 1; i <= 20; ++i) pool.Add(i * 64 * kMiB, i * kMiB);
  std::vector<std::uint64_t> sizes;
  pool.ForEachFree(10 * kMiB, [&](Block* block) {
    sizes.push_back(block->size);
    return sizes.size() < 5;
  });
  ASSERT_EQ(sizes.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(sizes[i], (20 - i) * kMiB);
  EXPECT_EQ(pool.Largest()->size, 20 * kMiB);
}

TEST(BlockPool, MergingKeepsTheLaterEpoch) {
  BlockPool pool;
  pool.Add(0, kMiB);
  Block* const a = pool.Allocate(512);
  Block* const b = pool.Allocate(512);
  pool.Free(a, 7);
  EXPECT_EQ(pool.Free(b, 3)->epoch, 7u);
  // What is cut off keeps it: which part was freed when is not known any more.
  EXPECT_EQ(pool.Allocate(512)->after->epoch, 7u);
}

// Against a reference that knows every byte's owner: random operations, with spans coming and
// going, and all invariants looked at throughout.
TEST(BlockPool, AgreesWithAReference) {
  std::mt19937_64 random(7);
  BlockPool pool;
  std::map<std::uint64_t, Block*> taken;           // by address
  std::map<std::uint64_t, std::uint64_t> present;  // begin -> size, as added
  const auto pick = [&](auto& map) {
    auto it = map.begin();
    std::advance(it, static_cast<long>(random() % map.size()));
    return it;
  };
  for (int step = 0; step < 30'000; ++step) {
    const std::uint64_t what = random() % 100;
    if (what < 3) {
      const std::uint64_t begin = (random() % 64) * 4 * kMiB;
      if (present.emplace(begin, 4 * kMiB).second) pool.Add(begin, 4 * kMiB);
    } else if (what < 5 && !present.empty()) {
      const auto it = pick(present);
      Block* const block = pool.Find(it->first);
      if (block->free() && block->end() >= it->first + it->second) {
        pool.Remove(block, it->first, it->second);
        present.erase(it);
      }
    } else if (what < 55) {
      const std::uint64_t size =
          RoundToQuantum(1 + (random() % 2 == 0 ? random() % (64 << 10) : random() % (3 * kMiB)));
      const std::uint64_t alignment = random() % 10 == 0 ? kQuantum << random() % 12 : kQuantum;
      Block* const block = pool.Allocate(size, alignment);
      if (block == nullptr) {
        // Then nothing that is free could have been enough, but far behind in its own bin.
        const std::uint64_t room = size + alignment - kQuantum;
        const Block* const largest = pool.Largest();
        EXPECT_EQ(pool.FindFitAmongAll(room) != nullptr,
                  largest != nullptr && largest->size >= room);
        continue;
      }
      ASSERT_EQ(block->size, size);
      ASSERT_EQ(block->address % alignment, 0u);
      const auto next = taken.lower_bound(block->address);
      ASSERT_TRUE(next == taken.end() || block->end() <= next->first);
      ASSERT_TRUE(next == taken.begin() || std::prev(next)->second->end() <= block->address);
      taken.emplace(block->address, block);
    } else if (!taken.empty()) {
      const auto it = pick(taken);
      ASSERT_EQ(pool.Find(it->first), it->second);
      pool.Free(it->second);
      taken.erase(it);
    }
    ASSERT_EQ(pool.taken_blocks(), taken.size());
    if (step % 64 == 0) {
      ASSERT_EQ(pool.Check(), "") << "at step " << step;
    }
  }
  for (const auto& [address, block] : taken) pool.Free(block);
  EXPECT_EQ(pool.free_bytes(), pool.bytes());
  EXPECT_EQ(pool.Check(), "");
}

// A17: how many blocks a search looks at does not grow with the number of holes, most of which are
// too small, or all of which fit, or are in the very bin of the request.
TEST(BlockPool, FindsAHoleAmongManyWithoutAScan) {
  struct Holes {
    const char* what;
    std::uint64_t most;  // the size of all but every 64th
    std::uint64_t few;   // the size of those
    std::uint64_t request;
  };
  const Holes cases[] = {
      {"far too small", 2048, 8192, 4096},
      {"too small, and in the bin of the request", kMiB, kMiB + 8192, kMiB + 4096},
      {"too small, and nothing fits", kMiB, kMiB, kMiB + 4096},
      {"as asked for, and nothing is larger", 2048, 1536, 2048},
      {"larger", 2048, 2048, 1536},
  };
  for (const Holes& each : cases) {
    for (const std::uint64_t holes : {64, 65'536}) {
      BlockPool pool;
      for (std::uint64_t i = 0; i < holes; ++i) {
        // The few are those that were added first, and so the last of their bin.
        pool.Add(i * 4 * kMiB, i < holes / 64 ? each.few : each.most);
      }
      EXPECT_EQ(pool.CountFree(), holes);
      EXPECT_LE(pool.CountLooks(each.request), 32U) << each.what << ", among " << holes;
      const bool any = each.few >= each.request || each.most >= each.request;
      // Who would fail without it finds the last one too.
      EXPECT_EQ(pool.FindFitAmongAll(each.request) != nullptr, any) << each.what;
    }
  }
}

TEST(BlockPool, WhoWouldFailGetsTheHoleFarBehindInItsBin) {
  constexpr std::uint64_t kHole = 64 * 1024;  // and one quantum more: one bin
  for (const std::uint64_t alignment : {kQuantum, 2 * kQuantum}) {
    BlockPool pool;
    pool.Add(0, 4 << 20);
    std::vector<Block*> holes;
    for (int i = 0; i < 41; ++i) {
      holes.push_back(pool.Allocate(i == 0 ? kHole + kQuantum : kHole));
      ASSERT_NE(pool.Allocate(kQuantum), nullptr);
    }
    ASSERT_NE(pool.Allocate(pool.free_bytes()), nullptr);
    for (Block* const hole : holes) pool.Free(hole);
    const std::uint64_t size = kHole + 2 * kQuantum - alignment;
    EXPECT_EQ(pool.Allocate(size, alignment), nullptr);
    const Block* const block = pool.AllocateAmongAll(size, alignment);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(block->address, 0U);
    EXPECT_EQ(block->size, size);
    EXPECT_EQ(pool.AllocateAmongAll(size, alignment), nullptr);
    EXPECT_EQ(pool.Check(), "");
  }
}

TEST(BlockPool, ServesEveryHoleThatIsThere) {
  BlockPool pool;
  constexpr std::uint64_t kHoles = 65'536;
  pool.Add(0, kHoles * 4096);
  std::vector<Block*> blocks;
  for (std::uint64_t i = 0; i < kHoles * 2; ++i) blocks.push_back(pool.Allocate(2048));
  for (std::size_t i = 0; i < blocks.size(); i += 2) pool.Free(blocks[i]);
  EXPECT_EQ(pool.CountFree(), kHoles);
  EXPECT_EQ(pool.Allocate(4096), nullptr);
  for (std::uint64_t i = 0; i < kHoles; ++i) ASSERT_NE(pool.Allocate(2048), nullptr);
  EXPECT_EQ(pool.free_bytes(), 0U);
  EXPECT_EQ(pool.Check(), "");
}

}  // namespace
}  // namespace keel::memory
