#include "keel/telemetry/tags.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace keel::telemetry {
namespace {

TEST(TagsTest, EqualNamesHaveEqualIds) {
  const TagId weights = InternTag("weights");
  EXPECT_NE(weights, TagId::kNone);
  EXPECT_EQ(InternTag(std::string("wei") + "ghts"), weights);
  EXPECT_NE(InternTag("activations"), weights);
  EXPECT_EQ(TagName(weights), "weights");
  EXPECT_EQ(InternTag(""), TagId::kNone);
  EXPECT_EQ(TagName(TagId::kNone), "");
  EXPECT_EQ(TagName(static_cast<TagId>(4'000'000'000U)), "(unknown)");
}

TEST(TagsTest, ScopesNestAndRestore) {
  EXPECT_EQ(CurrentTag(), TagId::kNone);
  {
    const ScopedTag outer("outer");
    EXPECT_EQ(TagName(CurrentTag()), "outer");
    {
      const ScopedTag inner(InternTag("inner"));
      EXPECT_EQ(TagName(CurrentTag()), "inner");
      // Another thread has its own.
      std::thread([] { EXPECT_EQ(CurrentTag(), TagId::kNone); }).join();
    }
    EXPECT_EQ(TagName(CurrentTag()), "outer");
  }
  EXPECT_EQ(CurrentTag(), TagId::kNone);
}

TEST(TagsTest, ThreadsAgreeOnIds) {
  constexpr int kThreads = 4;
  constexpr int kNames = 200;
  std::vector<std::vector<TagId>> ids(kThreads);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&ids, t] {
      for (int i = 0; i < kNames; ++i) {
        const std::string name = "shared " + std::to_string(i);
        ids[t].push_back(InternTag(name));
        EXPECT_EQ(TagName(ids[t].back()), name);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 1; t < kThreads; ++t) EXPECT_EQ(ids[t], ids[0]);
}

// In a child, because the table is the process's and stays full.
TEST(TagsTest, TooManyNamesBecomeOther) {
  EXPECT_EXIT(
      {
        TagId last = TagId::kNone;
        const TagId first = InternTag("first");
        for (std::size_t i = 0; i < kMaxTags; ++i) last = InternTag(std::to_string(i));
        const bool right = last == TagId::kOther && TagName(last) == "(other)" &&
                           InternTag("first") == first && TagName(first) == "first";
        std::exit(right ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace keel::telemetry
