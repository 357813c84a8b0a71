#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "keel/task/arguments.h"
#include "keel/task/image.h"
#include "task/fuzz_targets.h"
#include "task/messages.h"
#include "task/mpi/life.h"

namespace keel::task {
namespace {

using Content = std::vector<std::byte>;

struct Target {
  std::string_view name;  // of its folder
  void (*function)(std::span<const std::byte>);
  bool (*reads)(std::span<const std::byte>);
};

std::vector<Content> Corpus(std::string_view name) {
  std::vector<std::filesystem::path> paths;
  const std::filesystem::path folder =
      std::filesystem::path(KEEL_TEST_DATA) / "fuzz" / ("task_" + std::string(name));
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::vector<Content> contents;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
    const auto bytes = std::as_bytes(std::span(text));
    contents.emplace_back(bytes.begin(), bytes.end());
  }
  return contents;
}

// A few bytes changed, or words cut out or repeated.
Content Damaged(const std::vector<Content>& corpus, std::mt19937& random) {
  Content bytes = corpus[random() % corpus.size()];
  for (auto changes = 1 + random() % 3; changes > 0 && !bytes.empty(); --changes) {
    const std::size_t at = random() % bytes.size();
    const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const std::size_t length = std::min<std::size_t>(8 * (1 + random() % 4), bytes.size() - at);
    switch (random() % 4) {
      case 0:
        bytes[at] = static_cast<std::byte>(random());
        break;
      case 1:
        bytes[at] ^= static_cast<std::byte>(1 << random() % 8);
        break;
      case 2:
        bytes.erase(from, from + static_cast<std::ptrdiff_t>(length));
        break;
      default: {
        const Content piece(from, from + static_cast<std::ptrdiff_t>(length));
        bytes.insert(from, piece.begin(), piece.end());
      }
    }
  }
  return bytes;
}

class FuzzTest : public ::testing::TestWithParam<Target> {};

// The functions abort if something is wrong. The corpus is of files that are read.
TEST_P(FuzzTest, TheCorpusIsRead) {
  const std::vector<Content> corpus = Corpus(GetParam().name);
  ASSERT_FALSE(corpus.empty());
  for (const Content& bytes : corpus) {
    GetParam().function(bytes);
    EXPECT_TRUE(GetParam().reads(bytes));
  }
}

TEST_P(FuzzTest, DamageIsReadOrRefused) {
  const std::vector<Content> corpus = Corpus(GetParam().name);
  ASSERT_FALSE(corpus.empty());
  std::mt19937 random(1);
  const char* soak = std::getenv("KEEL_SOAK");
  const int rounds = soak != nullptr && std::string_view(soak) == "1" ? 1'000'000 : 3000;
  for (int round = 0; round < rounds; ++round) GetParam().function(Damaged(corpus, random));
}

INSTANTIATE_TEST_SUITE_P(
    Readers, FuzzTest,
    ::testing::Values(Target{"arguments", FuzzArguments,
                             [](std::span<const std::byte> b) {
                               return Arguments::Decode(b).ok();
                             }},
                      Target{"image", FuzzImage,
                             [](std::span<const std::byte> b) { return Image::Parse(b).ok(); }},
                      Target{"message", FuzzMessage,
                             [](std::span<const std::byte> b) {
                               return DecodeTask(b).ok() || DecodeRequest(b).ok() ||
                                      DecodeReply(b).ok();
                             }},
                      Target{"life", FuzzLife,
                             [](std::span<const std::byte> b) { return mpi::DecodeLife(b).ok(); }}),
    [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace keel::task
