#include "base/loaded_library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace keel {
namespace {

// A shared object with a variable, `counter`, as bytes.
std::span<const std::byte> Library() {
  static const std::string bytes = [] {
    std::ifstream file(KEEL_TEST_LIBRARY, std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  }();
  return std::as_bytes(std::span(bytes));
}

// The loader knows libraries by their paths, and descriptors, of which the paths are made, are used
// again: the second library must not be the first one.
TEST(LoadedLibraryTest, EachLoadIsALibraryOfItsOwn) {
  std::vector<std::shared_ptr<void>> libraries;
  for (int i = 0; i < 20; ++i) {
    Result<std::shared_ptr<void>> library = LoadLibraryImage(Library(), "the library");
    ASSERT_TRUE(library.ok()) << library.status().ToString();
    auto* const counter = static_cast<int*>(dlsym(library->get(), "counter"));
    ASSERT_NE(counter, nullptr);
    EXPECT_EQ(*counter, 0);
    *counter = i + 1;
    libraries.push_back(*std::move(library));
  }
}

TEST(LoadedLibraryTest, WhatIsNoLibraryIsNamed) {
  const auto text = std::as_bytes(std::span("not a library"));
  const Status status = LoadLibraryImage(text, "the text").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("the text, of 14 bytes, is not"), std::string::npos)
      << status.ToString();
  const Status damaged = LoadLibraryImage(Library().first(50), "the half").status();
  EXPECT_EQ(damaged.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(damaged.message().find("the half cannot be loaded"), std::string::npos)
      << damaged.ToString();
  EXPECT_EQ(LoadLibraryFile("/no/such/library", "it").status().code(),
            StatusCode::kInvalidArgument);
}

// Whatever name it was called by, and whatever is in the current folder.
TEST(LoadedLibraryTest, AFunctionIsOfAFile) {
  const auto file = [](const void* function) { return FileOf(function); };
  const Result<std::string> own = file(reinterpret_cast<const void*>(&LoadLibraryFile));
  ASSERT_TRUE(own.ok()) << own.status().ToString();
  EXPECT_EQ(*own, std::filesystem::read_symlink("/proc/self/exe"));
  const auto library = LoadLibraryFile(KEEL_TEST_LIBRARY, "the library");
  ASSERT_TRUE(library.ok());
  const Result<std::string> other = file(dlsym(library->get(), "counter"));
  ASSERT_TRUE(other.ok()) << other.status().ToString();
  EXPECT_EQ(*other, std::filesystem::canonical(KEEL_TEST_LIBRARY));
  const int nowhere = 0;
  EXPECT_EQ(file(&nowhere).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace keel
