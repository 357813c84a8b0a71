#include "keel/memory/parallel_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "base/forked_child_test.h"
#include "base/soon_test.h"
#include "base/thread_states_test.h"

namespace keel::memory {
namespace {

constexpr ParallelCopyOptions kEager{.threads = 4, .inline_limit = 4_KiB, .slice = 64_KiB};

std::vector<unsigned char> RandomBytes(std::size_t size, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<unsigned char> bytes(size);
  std::size_t at = 0;
  for (; at + 8 <= size; at += 8) {
    const std::uint64_t word = random();
    std::memcpy(bytes.data() + at, &word, 8);
  }
  for (; at < size; ++at) bytes[at] = static_cast<unsigned char>(random());
  return bytes;
}

// Copies a part of a buffer and looks at every byte, those around the part too.
void CopyAndCheck(ParallelCopy& copy, std::size_t size, std::size_t shift, unsigned seed) {
  const std::vector<unsigned char> source = RandomBytes(size + 64, seed);
  std::vector<unsigned char> destination(size + 64, 0xee);
  copy.Copy(destination.data() + shift, source.data() + 64 - shift, Bytes(size));
  ASSERT_EQ(std::memcmp(destination.data() + shift, source.data() + 64 - shift, size), 0)
      << size << " bytes, shifted by " << shift;
  const auto untouched = [](unsigned char byte) { return byte == 0xee; };
  ASSERT_TRUE(std::all_of(destination.begin(), destination.begin() + shift, untouched));
  ASSERT_TRUE(std::all_of(destination.begin() + shift + size, destination.end(), untouched));
}

TEST(ParallelCopyTest, EveryByteArrivesWhateverTheSizeAndAlignment) {
  ParallelCopy copy(kEager);
  EXPECT_EQ(copy.threads(), 4);
  unsigned seed = 1;
  for (const std::size_t size : {0UL, 1UL, 63UL, 4096UL, 4097UL, 131071UL, 131072UL, 131073UL,
                                 1000003UL, 5UL << 20, (7UL << 20) + 13}) {
    for (const std::size_t shift : {0UL, 1UL, 17UL, 63UL}) CopyAndCheck(copy, size, shift, ++seed);
  }
}

TEST(ParallelCopyTest, OneThreadIsTheCallerAlone) {
  ParallelCopy copy({.threads = 1, .inline_limit = Bytes(0)});
  EXPECT_EQ(copy.threads(), 1);
  CopyAndCheck(copy, 3 << 20, 5, 1);
}

TEST(ParallelCopyTest, MeanwhileIsCalledOnceByTheCaller) {
  ParallelCopy copy(kEager);
  for (const std::size_t size : {0UL, 100UL, 1UL << 20}) {
    const std::vector<unsigned char> source(size, 7);
    std::vector<unsigned char> destination(size);
    int calls = 0;
    const std::thread::id caller = std::this_thread::get_id();
    copy.Copy(destination.data(), source.data(), Bytes(size), [&] {
      ++calls;
      EXPECT_EQ(std::this_thread::get_id(), caller);
    });
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(destination, source);
  }
}

// A14
TEST(ParallelCopyTest, CallersAtTheSameTimeEachGetTheirWholeCopy) {
  for (const int linger : {0, 50}) {
    ParallelCopyOptions options = kEager;
    options.linger = std::chrono::microseconds(linger);
    ParallelCopy copy(options);
    std::vector<std::thread> callers;
    callers.reserve(6);
    for (unsigned caller = 0; caller < 6; ++caller) {
      callers.emplace_back([&copy, caller] {
        std::mt19937 random(caller);
        for (unsigned turn = 0; turn < 25; ++turn) {
          CopyAndCheck(copy, 100000 + random() % 900000, random() % 64, caller * 100 + turn);
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
  }
}

// T9
TEST(ParallelCopyTest, WorkersWithoutWorkSleep) {
  std::thread([] {}).join();  // with which a sanitizer starts a thread of its own
  const std::size_t before = StatesOfOthers().size();
  ParallelCopy copy(kEager);
  EXPECT_EQ(StatesOfOthers().size(), before) << "threads before there is anything to copy";
  CopyAndCheck(copy, 4 << 20, 0, 1);
  EXPECT_EQ(StatesOfOthers().size(), before + 3);
  EXPECT_TRUE(Soon([] { return StatesOfOthers().find('R') == std::string::npos; }))
      << StatesOfOthers();
  // And they are there when they are needed again.
  CopyAndCheck(copy, 4 << 20, 0, 2);
}

// A9
TEST(ParallelCopyTest, AForkedChildCopiesWithoutTheParentsThreads) {
  auto copy = std::make_unique<ParallelCopy>(kEager);
  CopyAndCheck(*copy, 4 << 20, 0, 1);
  const int status = InForkedChild([&] {
    EXPECT_EQ(copy->threads(), 1);
    CopyAndCheck(*copy, 4 << 20, 3, 2);
    copy.reset();
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  CopyAndCheck(*copy, 4 << 20, 3, 3);
}

TEST(ParallelCopyTest, TheSharedOneLivesWhileItIsHeld) {
  std::shared_ptr<ParallelCopy> first = ParallelCopy::Shared();
  EXPECT_EQ(first, ParallelCopy::Shared());
  const std::weak_ptr<ParallelCopy> seen = first;
  first.reset();
  EXPECT_TRUE(seen.expired());
}

#if KEEL_TEST_THREADS_AFTER_FORK
// A9
TEST(ParallelCopyTest, AForkedChildHasASharedOneOfItsOwn) {
  const std::shared_ptr<ParallelCopy> parents = ParallelCopy::Shared();
  CopyAndCheck(*parents, 4 << 20, 0, 1);
  const int status = InForkedChild([&] {
    const std::shared_ptr<ParallelCopy> own = ParallelCopy::Shared();
    EXPECT_NE(own, parents);
    CopyAndCheck(*own, 4 << 20, 0, 2);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}
#endif

// A9
TEST(ParallelCopyDeathTest, AStaticOneEndsItsThreadsAtExit) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        static const std::shared_ptr<ParallelCopy> held = ParallelCopy::Shared();
        static ParallelCopy own(kEager);
        CopyAndCheck(own, 4 << 20, 0, 1);
        CopyAndCheck(*held, 4 << 20, 0, 2);
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace keel::memory
