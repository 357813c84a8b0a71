// The copies of standard_kernels_body.h with as many workers as a device has. The simulated one has
// a single worker, which shares its work with nobody.

#include "drivers/shared/standard_kernels_body.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <memory>
#include <vector>

namespace keel::kernels {
namespace {

struct Machine {
  static U64 Fetch(const U64* from) { return *from; }
  static Row FetchRow(Worker /*worker*/, const Row* from) { return *from; }
  template <class T>
  static T LoadPassing(const T* from) {
    return *from;
  }
  template <class T>
  static void StorePassing(T* to, T value) {
    *to = value;
  }
  U8* Write(U64 address, U64) { return reinterpret_cast<U8*>(address); }
  const U8* Read(U64 address, U64) { return reinterpret_cast<const U8*>(address); }
};

constexpr U64 kRoom = 80'000;
constexpr U8 kUntouched = 0xEE;

struct Bytes {
  alignas(16) U8 from[kRoom];
  alignas(16) U8 to[kRoom];

  Bytes() {
    for (U64 i = 0; i < kRoom; ++i) from[i] = static_cast<U8>(i * 31 + i / 251) & 0x7F;
    std::fill(std::begin(to), std::end(to), kUntouched);
  }
  U64 source(U64 at) const { return reinterpret_cast<U64>(from + at); }
  U64 destination(U64 at) const { return reinterpret_cast<U64>(to + at); }
  // Whether these were copied, and none beside them.
  bool Copied(U64 to_at, U64 from_at, U64 size) const {
    return std::memcmp(to + to_at, from + from_at, size) == 0 &&
           std::all_of(to, to + to_at, [](U8 byte) { return byte == kUntouched; }) &&
           std::all_of(to + to_at + size, to + kRoom, [](U8 byte) { return byte == kUntouched; });
  }
};

TEST(StandardKernelsBody, AGroupOfAnySizeCopiesARangeOfAnySize) {
  for (const U64 workers : {1, 7, 32, 96, 100, 256, 512}) {
    for (const U64 unit : {16, 4, 1}) {
      for (const U64 units : {1, 31, 32, 33, 127, 128, 129, 1023, 1024, 1025, 3000, 4096, 4999}) {
        SCOPED_TRACE(testing::Message() << workers << " workers, " << units << " of " << unit);
        const auto bytes = std::make_unique<Bytes>();
        Machine machine;
        for (U64 i = 0; i < workers; ++i) {
          ASSERT_TRUE(CopyRange({i, workers}, machine, bytes->destination(unit),
                                bytes->source(2 * unit), units * unit));
        }
        EXPECT_TRUE(bytes->Copied(unit, 2 * unit, units * unit));
      }
    }
  }
}

TEST(StandardKernelsBody, GroupsShareThePiecesFromEitherEnd) {
  constexpr U64 kGroups = 3;
  constexpr U64 kWorkers = 64;
  constexpr U64 kSize = 4096;
  for (const bool last_first : {false, true}) {
    for (const U64 count : {1, 2, 3, 4, 7}) {
      const auto bytes = std::make_unique<Bytes>();
      Machine machine;
      std::vector<Piece> pieces;
      for (U64 i = 0; i < count; ++i) pieces.push_back({0, i * kSize, kSize});
      const Row row{bytes->destination(0), bytes->source(16)};
      for (U64 g = 0; g < kGroups; ++g) {
        for (U64 i = 0; i < kWorkers; ++i) {
          const Worker group{g, kGroups};
          const Worker worker{i, kWorkers};
          ASSERT_TRUE(
              last_first ? CopyTable<true>(group, worker, machine, pieces.data(), &row, count, 1)
                         : CopyTable<false>(group, worker, machine, pieces.data(), &row, count, 1));
        }
      }
      EXPECT_TRUE(bytes->Copied(0, 16, count * kSize)) << count << (last_first ? " backwards" : "");
    }
  }
}

TEST(StandardKernelsBody, RowsOfTheLaunchAreCopiedAndTheOthersLeftNear) {
  constexpr U64 kGroups = 3;
  constexpr U64 kWorkers = 64;
  const auto bytes = std::make_unique<Bytes>();
  const auto rows = std::make_unique<RowValues>();
  Machine machine;
  // Three rows in, the second of them left out, and two out.
  for (U64 i = 0; i < 3; ++i) {
    rows->row[i] = {i == 1 ? 0 : bytes->destination(i * 8192), bytes->source(i * 8192)};
    rows->size[i] = 4096;
  }
  rows->row[3] = {11, 12};
  rows->row[4] = {13, 14};
  const Piece pieces[] = {{0, 0, 4096},    {1, 0, 4096},    {2, 0, 4096},
                          {0, 4096, 4096}, {1, 4096, 4096}, {2, 4096, 4096}};
  Row near[2] = {};
  for (U64 g = 0; g < kGroups; ++g) {
    for (U64 i = 0; i < kWorkers; ++i) {
      CopyInRows({g, kGroups}, {i, kWorkers}, machine, *rows, pieces, 6, 3, near, 2);
    }
  }
  EXPECT_EQ(std::memcmp(bytes->to, bytes->from, 8192), 0);
  EXPECT_EQ(std::count(bytes->to + 8192, bytes->to + 16384, kUntouched), 8192);
  EXPECT_EQ(std::memcmp(bytes->to + 16384, bytes->from + 16384, 8192), 0);
  EXPECT_EQ(std::count(bytes->to + 24576, bytes->to + kRoom, kUntouched),
            static_cast<std::ptrdiff_t>(kRoom - 24576));
  EXPECT_EQ(near[0].destination, 11u);
  EXPECT_EQ(near[0].source, 12u);
  EXPECT_EQ(near[1].destination, 13u);
  EXPECT_EQ(near[1].source, 14u);
}

}  // namespace
}  // namespace keel::kernels
