#include "base/private_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <string>

namespace keel {
namespace {

TEST(PrivateFileTest, OnlyItsUserMayOpenIt) {
  const Result<UniqueFd> file = CreatePrivateFile("keel-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  struct stat status{};
  ASSERT_EQ(fstat(file->get(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  EXPECT_EQ(fcntl(file->get(), F_GETFD), FD_CLOEXEC);
  EXPECT_FALSE(IsSealed(*file, F_SEAL_GROW));
  EXPECT_EQ(fcntl(file->get(), F_ADD_SEALS, F_SEAL_GROW), 0);
  EXPECT_TRUE(IsSealed(*file, F_SEAL_GROW));
  EXPECT_FALSE(IsSealed(*file, F_SEAL_GROW | F_SEAL_SHRINK));
  const UniqueFd again(open(("/proc/self/fd/" + std::to_string(file->get())).c_str(), O_RDWR));
  EXPECT_TRUE(again.valid()) << "its own user may";
}

// The system answers with an error, which has all bits.
TEST(PrivateFileTest, WhatCannotBeSealedIsNot) {
  EXPECT_FALSE(IsSealed(UniqueFd(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)), F_SEAL_GROW));
  EXPECT_FALSE(IsSealed(UniqueFd(), F_SEAL_GROW));
}

TEST(PrivateFileTest, AnErrorNamesIt) {
  const Result<UniqueFd> file = CreatePrivateFile("keel-test", ~0U);
  EXPECT_FALSE(file.ok());
  EXPECT_NE(file.status().message().find("keel-test"), std::string_view::npos);
}

}  // namespace
}  // namespace keel
