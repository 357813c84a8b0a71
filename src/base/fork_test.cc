#include "base/fork.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/forked_child_test.h"

namespace keel {
namespace {

// Counts its ends.
class Counted {
 public:
  explicit Counted(int* ends) : ends_(ends) {}
  ~Counted() { ++*ends_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  int* const ends_;
};

TEST(HomeTest, AChildIsNotWhereItsParentsThingsWereMade) {
  const Home home;
  EXPECT_TRUE(home.here());
  const int status = InForkedChild([&] {
    EXPECT_FALSE(home.here());
    EXPECT_TRUE(Home().here());
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(home.here());
}

TEST(DeleteHereTest, AChildLeavesItsParentsObjectsAsTheyAre) {
  int ends = 0;
  auto made = MakeSharedHere<Counted>(&ends);
  std::shared_ptr<Counted> second = made;
  const int status = InForkedChild([&] {
    made.reset();
    second.reset();
    EXPECT_EQ(ends, 0);
    MakeSharedHere<Counted>(&ends).reset();
    EXPECT_EQ(ends, 1) << "its own are its own to end";
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  made.reset();
  EXPECT_EQ(ends, 0);
  second.reset();
  EXPECT_EQ(ends, 1);
}

TEST(PerProcessTest, AChildHasOneOfItsOwn) {
  PerProcess<int> number;
  number.Get() = 7;
  const int status = InForkedChild([&] {
    EXPECT_EQ(number.Get(), 0);
    number.Get() = 8;
    EXPECT_EQ(number.Get(), 8);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(number.Get(), 7);
  number.End();
}

TEST(PerProcessTest, AnEndIsThatOfTheProcessesOwn) {
  static int ends;
  ends = 0;
  struct Ending {
    ~Ending() { ++ends; }
  };
  PerProcess<Ending> ending;
  ending.Get();
  const int status = InForkedChild([&] {
    ending.End();
    EXPECT_EQ(ends, 0);
    ending.Get();
    ending.End();
    EXPECT_EQ(ends, 1);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  ending.End();
  EXPECT_EQ(ends, 1);
}

}  // namespace
}  // namespace keel
