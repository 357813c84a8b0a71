#include "drivers/shared/address_map.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace keel::vendor {
namespace {

constexpr hal::DeviceId kOne{1};
constexpr hal::DeviceId kTwo{2};
constexpr DeviceAddress kBase{0x10000};

DeviceAddress At(std::uint64_t offset) { return kBase + Bytes(offset); }

TEST(AddressMap, AMappingLiesInOneReservation) {
  AddressMap map;
  EXPECT_EQ(map.AddMapping(kOne, kBase, Bytes(16)).code(), StatusCode::kInvalidArgument);
  map.AddReservation(kOne, kBase, Bytes(64));
  map.AddReservation(kOne, At(64), Bytes(64));  // a neighbour
  EXPECT_EQ(map.AddMapping(kOne, At(48), Bytes(32)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(map.AddMapping(kOne, kBase - Bytes(16), Bytes(32)).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(map.AddMapping(kOne, At(128), Bytes(16)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(map.AddMapping(kOne, kBase, Bytes(0)).code(), StatusCode::kInvalidArgument);
  // A size that would run over the end of all addresses.
  EXPECT_EQ(map.AddMapping(kOne, At(16), Bytes(~0ull)).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(map.AddMapping(kOne, At(48), Bytes(16)).ok());
  EXPECT_TRUE(map.AddMapping(kOne, At(64), Bytes(64)).ok());
}

TEST(AddressMap, MappingsDoNotOverlap) {
  AddressMap map;
  map.AddReservation(kOne, kBase, Bytes(64));
  ASSERT_TRUE(map.AddMapping(kOne, At(16), Bytes(16)).ok());
  for (const auto& [offset, size] : {std::pair{16, 16}, {0, 32}, {24, 4}, {0, 17}, {31, 33}}) {
    EXPECT_EQ(map.AddMapping(kOne, At(offset), Bytes(size)).code(), StatusCode::kFailedPrecondition)
        << offset << " " << size;
  }
  EXPECT_TRUE(map.AddMapping(kTwo, At(0), Bytes(16)).ok());
  EXPECT_TRUE(map.AddMapping(kTwo, At(32), Bytes(32)).ok());
}

TEST(AddressMap, MappingsAreTakenWhole) {
  AddressMap map;
  map.AddReservation(kOne, kBase, Bytes(64));
  ASSERT_TRUE(map.AddMapping(kOne, At(0), Bytes(16)).ok());
  ASSERT_TRUE(map.AddMapping(kOne, At(16), Bytes(16)).ok());
  ASSERT_TRUE(map.AddMapping(kOne, At(48), Bytes(16)).ok());
  // Parts, a hole behind, a hole in the middle, nothing at all.
  for (const auto& [offset, size] :
       {std::pair{0, 8}, {8, 8}, {0, 24}, {8, 24}, {0, 48}, {0, 64}, {32, 16}, {0, 0}}) {
    EXPECT_EQ(map.CheckWhole(At(offset), Bytes(size)).code(), StatusCode::kInvalidArgument)
        << offset << " " << size;
    EXPECT_FALSE(map.TakeMappings(At(offset), Bytes(size)).ok()) << offset << " " << size;
  }
  EXPECT_TRUE(map.CheckWhole(At(0), Bytes(32)).ok());
  const auto taken = map.TakeMappings(At(0), Bytes(32));
  ASSERT_TRUE(taken.ok());
  ASSERT_EQ(taken->size(), 2u);
  EXPECT_EQ((*taken)[1].address, At(16).value());
  EXPECT_FALSE(map.CheckWhole(At(0), Bytes(32)).ok());
  map.PutBack(*taken);
  EXPECT_TRUE(map.CheckWhole(At(16), Bytes(16)).ok());
}

TEST(AddressMap, AReservationIsTakenWholeAndEmpty) {
  AddressMap map;
  map.AddReservation(kOne, kBase, Bytes(64));
  ASSERT_TRUE(map.AddMapping(kOne, At(48), Bytes(16)).ok());
  EXPECT_EQ(map.TakeReservation(kBase, Bytes(32)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(map.TakeReservation(At(16), Bytes(48)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(map.TakeReservation(kBase, Bytes(64)).code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE(map.TakeMappings(At(48), Bytes(16)).ok());
  EXPECT_TRUE(map.TakeReservation(kBase, Bytes(64)).ok());
  EXPECT_EQ(map.TakeReservation(kBase, Bytes(64)).code(), StatusCode::kInvalidArgument);
}

TEST(AddressMap, WhatAClosedDeviceLeftIsForgotten) {
  AddressMap map;
  map.AddReservation(kOne, kBase, Bytes(64));
  map.AddReservation(kTwo, At(64), Bytes(64));
  ASSERT_TRUE(map.AddMapping(kOne, At(0), Bytes(16)).ok());
  ASSERT_TRUE(map.AddMapping(kTwo, At(64), Bytes(16)).ok());
  map.Forget(kOne);
  EXPECT_FALSE(map.CheckWhole(At(0), Bytes(16)).ok());
  EXPECT_EQ(map.TakeReservation(kBase, Bytes(64)).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(map.CheckWhole(At(64), Bytes(16)).ok());
}

TEST(AddressMap, OfManyThreadsOneGetsTheRange) {
  AddressMap map;
  map.AddReservation(kOne, kBase, Bytes(64));
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> won{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] { won += map.AddMapping(kOne, At(16), Bytes(16)).ok() ? 1 : 0; });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(won.load(), 1);
    ASSERT_TRUE(map.TakeMappings(At(16), Bytes(16)).ok());
  }
}

}  // namespace
}  // namespace keel::vendor
