#include "base/near_miss.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace keel {
namespace {

TEST(NearMissTest, FindsWhatWasMeant) {
  const std::vector<std::string> known = {"max_split_size_mb", "limit", "history", "host_limit"};
  const std::pair<const char*, const char*> cases[] = {
      {"max_split_size", "max_split_size_mb"},
      {"max_spilt_size_mb", "max_split_size_mb"},
      {"MAX_SPLIT_SIZE_MB", "max_split_size_mb"},
      {"limits", "limit"},
      {"limt", "limit"},
      {"histroy", "history"},
      {"hostlimit", "host_limit"},
      {"memory", ""},
      {"", ""},
      {"x", ""},
      {"li", ""},
  };
  for (const auto& [word, meant] : cases) EXPECT_EQ(NearMiss(word, known), meant) << word;
  EXPECT_EQ(NearMiss("limit", {}), "");
  EXPECT_EQ(NearMiss(std::string(1'000'000, 'l'), known), "");
}

}  // namespace
}  // namespace keel
