#include "memory/copy_crew.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/soon_test.h"
#include "base/thread_states_test.h"

namespace keel::memory {
namespace {

constexpr std::size_t kChunk = 128 << 10;
constexpr std::size_t kSlice = 32 << 10;
constexpr ParallelCopyOptions kEager{.threads = 4, .inline_limit = 4_KiB, .share = 32_KiB};

// Bytes that differ from chunk to chunk and within.
std::vector<std::byte> Numbered(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>((i >> 10) * 7 + i % 251);
  }
  return bytes;
}

CopyShape Shape(std::byte* destination, const std::vector<std::byte>& source) {
  return {.destination = destination,
          .source = source.data(),
          .size = source.size(),
          .chunk = kChunk,
          .slice = kSlice,
          .buffered = (source.size() + kChunk - 1) / kChunk};
}

void Finish(PiecewiseCopy& copy, std::uint64_t chunks) {
  copy.Allow(chunks);
  while (copy.Done() < chunks) {
    if (!copy.Help() && copy.Done() < chunks) copy.AwaitMore();
  }
}

TEST(CopyCrewTest, AChunkIsCopiedWhenItIsAllowedAndNotBefore) {
  ParallelCopy crew(kEager);
  const std::vector<std::byte> source = Numbered(7 * kChunk + 1000);
  for (int turn = 0; turn < 5; ++turn) {
    std::vector<std::byte> destination(source.size(), std::byte{0xee});
    PiecewiseCopy copy(crew, Shape(destination.data(), source));
    EXPECT_FALSE(copy.Help());
    for (std::uint64_t chunk = 0; chunk < 8; ++chunk) {
      EXPECT_EQ(copy.Done(), chunk);
      Finish(copy, chunk + 1);
      const std::size_t end = std::min((chunk + 1) * kChunk, source.size());
      ASSERT_TRUE(std::equal(source.begin(), source.begin() + end, destination.begin()));
      ASSERT_TRUE(std::all_of(destination.begin() + end, destination.end(),
                              [](std::byte byte) { return byte == std::byte{0xee}; }))
          << "behind chunk " << chunk;
    }
  }
}

TEST(CopyCrewTest, APlaceInTheBufferIsForOneChunkAfterTheOther) {
  ParallelCopy crew(kEager);
  const std::vector<std::byte> source = Numbered(9 * kChunk + 5);
  std::vector<std::byte> buffer(3 * kChunk);
  std::vector<std::byte> back(source.size());
  CopyShape in = Shape(buffer.data(), source);
  in.buffered = 3;
  in.buffer = CopyShape::Buffer::kDestination;
  CopyShape out{.destination = back.data(),
                .source = buffer.data(),
                .size = source.size(),
                .chunk = kChunk,
                .slice = kSlice,
                .buffered = 3,
                .buffer = CopyShape::Buffer::kSource};
  PiecewiseCopy first(crew, in);
  PiecewiseCopy second(crew, out);
  for (std::uint64_t chunk = 0; chunk < 10; ++chunk) {
    Finish(first, chunk + 1);
    Finish(second, chunk + 1);
  }
  EXPECT_EQ(back, source);
}

// A14
TEST(CopyCrewTest, CallersBeyondTheJobsThatThereAreCopyAlone) {
  ParallelCopy crew(kEager);
  const std::vector<std::byte> source = Numbered(3 * kChunk);
  std::vector<std::vector<std::byte>> destinations(40, std::vector<std::byte>(source.size()));
  std::vector<std::unique_ptr<PiecewiseCopy>> copies;
  for (std::vector<std::byte>& destination : destinations) {
    copies.push_back(std::make_unique<PiecewiseCopy>(crew, Shape(destination.data(), source)));
  }
  for (const auto& copy : copies) Finish(*copy, 3);
  copies.clear();
  EXPECT_EQ(crew.stats().alone, 40U - 16U);
  for (const std::vector<std::byte>& destination : destinations) EXPECT_EQ(destination, source);
  // And their jobs are there for others.
  std::vector<std::byte> destination(source.size());
  PiecewiseCopy copy(crew, Shape(destination.data(), source));
  EXPECT_EQ(crew.stats().alone, 40U - 16U);
  Finish(copy, 3);
  EXPECT_EQ(destination, source);
}

// A14
TEST(CopyCrewTest, WhatIsGivenUpHalfWayIsTouchedByNobody) {
  constexpr std::size_t kLong = 8 << 20;
  CopyCrew crew(kEager);
  const std::vector<std::byte> source = Numbered(3 * kLong);
  std::vector<std::byte> destination(source.size());
  CopyShape shape = Shape(destination.data(), source);
  shape.chunk = source.size();
  shape.slice = kLong;
  CopyJob* const job = crew.Open(shape);
  ASSERT_NE(job, nullptr);
  job->Allow(1);
  crew.Call(*job);
  // Workers have taken everything, and copy.
  ASSERT_TRUE(Soon([&] { return !job->HasMore(); }));
  crew.Abandon(*job);
  for (std::size_t slice = 0; slice < 3; ++slice) {
    const std::size_t late = slice * kLong + kLong / 8 * 7;
    EXPECT_EQ(destination[late], source[late]) << "a worker is not done with slice " << slice;
  }
  // And what nobody has taken is never taken.
  std::fill(destination.begin(), destination.end(), std::byte{0xee});
  CopyJob* const other = crew.Open(shape);
  ASSERT_EQ(other, job);
  other->Allow(1);
  crew.Abandon(*other);
  crew.Call(*other);
  EXPECT_FALSE(other->HasMore());
}

TEST(CopyCrewTest, AWorkerThatIsAwakeIsNotWoken) {
  ParallelCopyOptions options = kEager;
  options.linger = std::chrono::minutes(10);
  ParallelCopy crew(options);
  const std::vector<std::byte> source = Numbered(8 * kChunk);
  std::vector<std::byte> destination(source.size());
  for (int turn = 0; turn < 50; ++turn) {
    crew.Copy(destination.data(), source.data(), Bytes(source.size()));
  }
  EXPECT_EQ(crew.stats().wakes, 0U);
}

// T9
TEST(CopyCrewTest, OnesThatSleepAreWokenByOneCall) {
  std::thread([] {}).join();  // with which a sanitizer starts a thread of its own
  std::size_t before = 0;
  ASSERT_TRUE(Soon([&] {
    // One that was joined is there a little longer, and does not sleep.
    const std::string states = StatesOfOthers();
    before = states.size();
    return states.find_first_not_of('S') == std::string::npos;
  }));
  ParallelCopyOptions options = kEager;
  options.linger = std::chrono::microseconds(0);
  ParallelCopy crew(options);
  const std::vector<std::byte> source = Numbered(8 * kChunk);
  std::vector<std::byte> destination(source.size());
  const auto asleep = [&] {
    return Soon([&] {
      const std::string states = StatesOfOthers();
      return static_cast<std::size_t>(std::count(states.begin(), states.end(), 'S')) >= before + 3;
    });
  };
  crew.Copy(destination.data(), source.data(), Bytes(source.size()));
  ASSERT_TRUE(asleep()) << StatesOfOthers();
  const std::uint64_t wakes = crew.stats().wakes;
  {
    // Opening it calls them, though there is nothing to copy yet; and they go to sleep again.
    PiecewiseCopy copy(crew, Shape(destination.data(), source));
    EXPECT_EQ(crew.stats().wakes, wakes + 1);
    ASSERT_TRUE(asleep()) << StatesOfOthers();
    copy.Allow(8);
    EXPECT_EQ(crew.stats().wakes, wakes + 2);
    // They copy, and nobody else does.
    EXPECT_TRUE(Soon([&] { return copy.Done() == 8; }));
  }
  EXPECT_EQ(destination, source);
}

}  // namespace
}  // namespace keel::memory
