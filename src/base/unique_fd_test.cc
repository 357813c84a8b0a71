#include "keel/base/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>

namespace keel {
namespace {

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) != -1; }
int OpenSomething() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

TEST(UniqueFdTest, ClosesWhatItOwns) {
  const int raw = OpenSomething();
  {
    const UniqueFd fd(raw);
    EXPECT_TRUE(fd.valid());
    EXPECT_EQ(fd.get(), raw);
  }
  EXPECT_FALSE(IsOpen(raw));
  EXPECT_FALSE(UniqueFd().valid());
}

TEST(UniqueFdTest, MovesWithoutClosing) {
  const int raw = OpenSomething();
  UniqueFd first(raw);
  UniqueFd second = std::move(first);
  EXPECT_FALSE(first.valid());  // NOLINT(bugprone-use-after-move): what the test is about
  EXPECT_TRUE(IsOpen(raw));
  const int other = OpenSomething();
  second = UniqueFd(other);
  EXPECT_FALSE(IsOpen(raw));
  EXPECT_TRUE(IsOpen(other));
}

TEST(UniqueFdTest, ReleaseLeavesItToTheCaller) {
  UniqueFd fd(OpenSomething());
  const int raw = fd.Release();
  EXPECT_FALSE(fd.valid());
  EXPECT_TRUE(IsOpen(raw));
  fd.Reset(raw);
  fd.Reset(raw);
  EXPECT_TRUE(IsOpen(raw));
  fd.Reset(-1);
  EXPECT_FALSE(IsOpen(raw));
}

TEST(UniqueFdTest, AFailedCloseIsLogged) {
  ::testing::internal::CaptureStderr();
  // A number that no process may have.
  UniqueFd(1 << 30).Reset(-1);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("EBADF"), std::string::npos);
}

}  // namespace
}  // namespace keel
