#include "keel/trace/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "trace/files_test.h"

namespace keel::trace {
namespace {

using ::testing::HasSubstr;

class AtomicFileTest : public FileTest {};

TEST_F(AtomicFileTest, IsThereAfterCommitOnly) {
  auto file = AtomicFile::Create(PathOf("new"));
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  ASSERT_TRUE(file->Write("one ").ok());
  ASSERT_TRUE(file->Write("two").ok());
  EXPECT_FALSE(std::filesystem::exists(PathOf("new")));
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(Contents(PathOf("new")), "one two");
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(AtomicFileTest, WithoutCommitNothingChanges) {
  const std::string path = Write("old");
  {
    auto file = AtomicFile::Create(path);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->Write("new").ok());
    EXPECT_EQ(Contents(path), "old");
    EXPECT_EQ(FileCount(), 2u);
  }
  EXPECT_EQ(Contents(path), "old");
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(AtomicFileTest, AFileThatIsReplacedKeepsItsPermissionsAndItsLinks) {
  const std::string path = Write("old");
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  const std::string link = PathOf("link");
  std::filesystem::create_symlink(path, link);
  auto file = AtomicFile::Create(link);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  ASSERT_TRUE(file->Write("new").ok());
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(Contents(path), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  struct stat now{};
  ASSERT_EQ(stat(path.c_str(), &now), 0);
  EXPECT_EQ(now.st_mode & 07777, 0640u);
}

TEST_F(AtomicFileTest, WhatCannotBeWrittenIsNamed) {
  const auto lost = AtomicFile::Create(PathOf("absent/file"));
  EXPECT_EQ(lost.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(lost.status().ToString(), HasSubstr("absent/file"));
  const auto folder = AtomicFile::Create(folder_.string());
  EXPECT_EQ(folder.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(folder.status().ToString(), HasSubstr("is no file"));
  EXPECT_EQ(FileCount(), 0u);
}

// A full disk, as far as a test can have one: the system refuses to let a file grow.
TEST_F(AtomicFileTest, AWriteThatFailsLeavesTheOldFile) {
  const std::string path = Write("old");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 1000, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Status status;
  {
    auto file = AtomicFile::Create(path);
    EXPECT_TRUE(file.ok());
    if (file.ok()) status = file->Write(std::string(5000, 'x'));
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.ToString(), HasSubstr(path));
  EXPECT_EQ(Contents(path), "old");
  EXPECT_EQ(FileCount(), 1u);
}

}  // namespace
}  // namespace keel::trace
