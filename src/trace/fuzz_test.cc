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

#include "trace/fuzz_targets.h"

namespace keel::trace {
namespace {

struct Target {
  std::string_view name;  // of its folder
  void (*function)(std::string_view);
};

std::vector<std::string> Corpus(std::string_view name) {
  std::vector<std::filesystem::path> paths;
  const std::filesystem::path folder =
      std::filesystem::path(KEEL_TEST_DATA) / "fuzz" / ("trace_" + std::string(name));
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::vector<std::string> contents;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    contents.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return contents;
}

// A few bytes changed, cut out, repeated, or taken from another file.
std::string Damaged(const std::vector<std::string>& corpus, std::mt19937& random) {
  std::string bytes = corpus[random() % corpus.size()];
  for (std::uint32_t changes = 1 + random() % 4; changes > 0 && !bytes.empty(); --changes) {
    const std::size_t at = random() % bytes.size();
    const std::size_t length = random() % 32;
    switch (random() % 5) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes[at] ^= static_cast<char>(1 << random() % 8);
        break;
      case 2:
        bytes.erase(at, length);
        break;
      case 3:
        bytes.insert(at, bytes.substr(random() % bytes.size(), length));
        break;
      default: {
        const std::string& other = corpus[random() % corpus.size()];
        if (!other.empty()) bytes.insert(at, other.substr(random() % other.size(), length));
      }
    }
  }
  return bytes;
}

class FuzzTest : public ::testing::TestWithParam<Target> {};

// The functions abort if something is wrong.
TEST_P(FuzzTest, TheCorpusIsReadOrRefused) {
  const std::vector<std::string> corpus = Corpus(GetParam().name);
  ASSERT_FALSE(corpus.empty());
  for (const std::string& bytes : corpus) GetParam().function(bytes);
}

TEST_P(FuzzTest, DamageIsReadOrRefused) {
  const std::vector<std::string> corpus = Corpus(GetParam().name);
  ASSERT_FALSE(corpus.empty());
  std::mt19937 random(1);
  const char* soak = std::getenv("KEEL_SOAK");
  const int rounds = soak != nullptr && std::string_view(soak) == "1" ? 300'000 : 1000;
  for (int round = 0; round < rounds; ++round) GetParam().function(Damaged(corpus, random));
}

INSTANTIATE_TEST_SUITE_P(Readers, FuzzTest,
                         ::testing::Values(Target{"pickle", FuzzPickle}, Target{"json", FuzzJson},
                                           Target{"rmm_log", FuzzRmmLog},
                                           Target{"compressed", FuzzCompressed}),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace keel::trace
