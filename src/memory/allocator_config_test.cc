#include "keel/memory/allocator_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/docs_table_test.h"

namespace keel::memory {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Backend = AllocatorConfig::Backend;
using Debug = AllocatorConfig::Debug;

AllocatorConfig Parsed(std::string_view text) {
  Result<AllocatorConfig> config = AllocatorConfig::Parse(text);
  EXPECT_TRUE(config.ok()) << text << ": " << config.status().ToString();
  return config.ok() ? *std::move(config) : AllocatorConfig();
}

std::string ParseError(std::string_view text) {
  const Result<AllocatorConfig> config = AllocatorConfig::Parse(text);
  EXPECT_FALSE(config.ok()) << text;
  EXPECT_EQ(config.status().code(), StatusCode::kInvalidArgument) << text;
  return std::string(config.status().message());
}

TEST(AllocatorConfigTest, NothingIsTheDefaults) {
  EXPECT_EQ(Parsed(""), AllocatorConfig());
  EXPECT_EQ(Parsed("").ToString(), "");
  EXPECT_EQ(Parsed("").max_split_size, kUnlimited);
  EXPECT_EQ(Parsed("").max_non_split_rounding, 20_MiB);
  EXPECT_THAT(Parsed("").warnings, IsEmpty());
}

// Every key acts on a field, and on the one that the header says (A8).
TEST(AllocatorConfigTest, EveryKeySetsItsField) {
  using Check = std::function<bool(const AllocatorConfig&)>;
  const std::map<std::string, std::pair<std::string, Check>> cases = {
      {"backend", {"passthrough", [](auto& c) { return c.backend == Backend::kPassthrough; }}},
      {"max_split_size_mb", {"128", [](auto& c) { return c.max_split_size == 128_MiB; }}},
      {"max_non_split_rounding_mb",
       {"64", [](auto& c) { return c.max_non_split_rounding == 64_MiB; }}},
      {"garbage_collection_threshold",
       {"0.8", [](auto& c) { return c.garbage_collection_threshold == 0.8; }}},
      {"roundup_power2_divisions",
       {"4", [](auto& c) { return c.roundup_power2_divisions[9] == 4; }}},
      {"expandable_segments", {"False", [](auto& c) { return !c.expandable_segments; }}},
      {"large_segment_size_mb", {"40", [](auto& c) { return c.large_segment_size == 40_MiB; }}},
      {"per_process_memory_fraction",
       {"0.5", [](auto& c) { return c.per_process_memory_fraction == 0.5; }}},
      {"limit", {"20GiB", [](auto& c) { return c.limit == 20_GiB; }}},
      {"debug", {"guards", [](auto& c) { return c.debug == Debug::kGuards; }}},
      {"history", {"1000", [](auto& c) { return c.history == 1000; }}},
      {"history_stacks",
       {"on,history:7", [](auto& c) { return c.history_stacks && c.history == 7; }}},
      {"front_cache", {"0", [](auto& c) { return c.front_cache == 0_B; }}},
      {"handle_size", {"64MiB", [](auto& c) { return c.handle_size == 64_MiB; }}},
      {"upkeep", {"0.05", [](auto& c) { return c.upkeep == 0.05; }}},
      {"pinned_use_cuda_host_register",  // vendor-ok: PyTorch's key
       {"True", [](auto& c) { return c.pinned_use_host_register; }}},
      {"pinned_use_hip_host_register",  // vendor-ok: PyTorch's key
       {"True", [](auto& c) { return c.pinned_use_host_register; }}},
      {"pinned_num_register_threads",
       {"8", [](auto& c) { return c.pinned_num_register_threads == 8; }}},
      {"pinned_use_background_threads",
       {"True", [](auto& c) { return c.pinned_use_background_threads; }}},
      {"pinned_reserve_segment_size_mb",
       {"512", [](auto& c) { return c.pinned_reserve_segment_size == 512_MiB; }}},
      {"host_limit", {"8 GiB", [](auto& c) { return c.host_limit == 8_GiB; }}},
      {"host_cache", {"4GiB", [](auto& c) { return c.host_cache == 4_GiB; }}},
      {"host_background_reserve",
       {"8MiB", [](auto& c) { return c.host_background_reserve == 8_MiB; }}},
      {"staging_pin_limit", {"4GiB", [](auto& c) { return c.staging_pin_limit == 4_GiB; }}},
      {"staging_threshold", {"1MiB", [](auto& c) { return c.staging_threshold == 1_MiB; }}},
      {"staging_chunk", {"8MiB", [](auto& c) { return c.staging_chunk == 8_MiB; }}},
      {"staging_threads", {"3", [](auto& c) { return c.staging_threads == 3; }}},
      {"prefault", {"yes", [](auto& c) { return c.prefault; }}},
  };
  std::set<std::string> described;
  for (const AllocatorKey& key : DescribeAllocatorKeys()) {
    described.insert(key.name);
    if (!key.no_effect.empty()) {
      const AllocatorConfig config = Parsed(key.name + ":True");
      EXPECT_EQ(config, AllocatorConfig()) << key.name;
      EXPECT_THAT(config.warnings,
                  ElementsAre(key.name + " has no effect: " + std::string(key.no_effect)));
      continue;
    }
    const auto found = cases.find(key.name);
    ASSERT_NE(found, cases.end()) << "no case here for " << key.name;
    const auto& [value, check] = found->second;
    EXPECT_FALSE(check(AllocatorConfig())) << key.name;
    const AllocatorConfig config = Parsed(key.name + ":" + value);
    EXPECT_TRUE(check(config)) << key.name;
    EXPECT_FALSE(config == AllocatorConfig()) << key.name;
    EXPECT_EQ(Parsed(config.ToString()), config) << config.ToString();
  }
  for (const auto& [name, unused] : cases) EXPECT_TRUE(described.contains(name)) << name;
}

TEST(AllocatorConfigTest, WhatTheDefaultsAreWrittenAsIsTheDefault) {
  for (const AllocatorKey& key : DescribeAllocatorKeys()) {
    EXPECT_EQ(Parsed(key.name + ":" + key.default_value), AllocatorConfig()) << key.name;
  }
}

TEST(AllocatorConfigTest, ValuesOutsideTheRangeAreRefused) {
  // At the edge, and just past it.
  const std::pair<const char*, const char*> cases[] = {
      {"max_split_size_mb:20", "max_split_size_mb:19"},
      {"max_non_split_rounding_mb:20", "max_non_split_rounding_mb:19"},
      {"large_segment_size_mb:11", "large_segment_size_mb:10"},
      {"garbage_collection_threshold:0.999", "garbage_collection_threshold:1"},
      {"garbage_collection_threshold:0", "garbage_collection_threshold:-0.1"},
      {"upkeep:1", "upkeep:1.1"},
      {"per_process_memory_fraction:1.0", "per_process_memory_fraction:1.01"},
      {"per_process_memory_fraction:0", "per_process_memory_fraction:-1"},
      {"pinned_num_register_threads:128", "pinned_num_register_threads:256"},
      {"pinned_num_register_threads:1", "pinned_num_register_threads:0"},
      {"pinned_num_register_threads:4", "pinned_num_register_threads:3"},
      {"pinned_reserve_segment_size_mb:0", "pinned_reserve_segment_size_mb:-1"},
      {"limit:1", "limit:0"},
      {"host_limit:unlimited", "host_limit:0"},
      {"staging_threshold:auto", "staging_threshold:often"},
      {"host_limit:4MiB,pinned_reserve_segment_size_mb:4",
       "pinned_reserve_segment_size_mb:5,host_limit:4MiB"},
      {"history:100000000", "history:100000001"},
      {"history:0", "history:-1"},
      {"front_cache:1GiB", "front_cache:1025MiB"},
      {"handle_size:4KiB", "handle_size:4095"},
      {"handle_size:16GiB", "handle_size:17GiB"},
      {"staging_chunk:64KiB", "staging_chunk:63KiB"},
      {"staging_chunk:1GiB", "staging_chunk:2GiB"},
      {"host_background_reserve:1TiB", "host_background_reserve:2TiB"},
      {"staging_pin_limit:unlimited", "staging_pin_limit:some"},
      {"staging_threads:256", "staging_threads:257"},
      {"roundup_power2_divisions:1048576", "roundup_power2_divisions:2097152"},
      {"roundup_power2_divisions:8", "roundup_power2_divisions:6"},
      {"expandable_segments:no", "expandable_segments:perhaps"},
      {"debug:Full", "debug:loud"},
      {"backend:Native", "backend:fast"},
      {"max_split_size_mb:unlimited", "max_non_split_rounding_mb:unlimited"},
      {"limit:unlimited", "front_cache:unlimited"},
  };
  for (const auto& [right, wrong] : cases) {
    EXPECT_TRUE(AllocatorConfig::Parse(right).ok())
        << AllocatorConfig::Parse(right).status().ToString();
    const std::string key(wrong, std::string_view(wrong).find(':'));
    EXPECT_THAT(ParseError(wrong), StartsWith("KEEL_ALLOC_CONF: key '" + key + "': "));
  }
}

TEST(AllocatorConfigTest, ErrorsSayWhatIsAllowed) {
  EXPECT_THAT(ParseError("max_split_size_mb:5"), HasSubstr("'5' is not a whole number from 20"));
  EXPECT_THAT(ParseError("front_cache:2GiB"), HasSubstr("'2GiB' is not a size from 0 to 1GiB"));
  EXPECT_THAT(ParseError("backend:fast"), HasSubstr("'fast' is neither native nor passthrough"));
  EXPECT_THAT(ParseError("debug:loud"), HasSubstr("off, guards, poison, full"));
  EXPECT_THAT(ParseError("limit:lots"), HasSubstr("'lots' is not a size from 1, or unlimited"));
  EXPECT_THAT(ParseError("backend:cudaMallocAsync"),  // vendor-ok: PyTorch's word
              AllOf(HasSubstr("MallocAsync' (the vendor's own pool)"), HasSubstr("native")));
  EXPECT_THAT(ParseError("history_stacks:true"), HasSubstr("history:100000"));
}

TEST(AllocatorConfigTest, AnUnknownKeyIsNamedWithWhatWasMeant) {
  EXPECT_THAT(ParseError("max_split_size:128"),
              AllOf(StartsWith("KEEL_ALLOC_CONF: unknown key 'max_split_size' (did you mean "
                               "'max_split_size_mb'?); known keys: "),
                    HasSubstr("expandable_segments"), HasSubstr("staging_chunk")));
  EXPECT_THAT(ParseError("expandable_segment:True"), HasSubstr("'expandable_segments'?"));
  EXPECT_THAT(ParseError("colour:blue"), AllOf(HasSubstr("unknown key 'colour'; known keys: ")));
  EXPECT_THAT(std::string(AllocatorConfig::Parse("x:1", "here").status().message()),
              StartsWith("here: unknown key 'x'"));
}

// The example of PyTorch's manual: sizes from 256 MiB on are listed, ">" is what is above 1 GiB.
TEST(AllocatorConfigTest, DivisionsBySize) {
  const AllocatorConfig config = Parsed("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]");
  const std::pair<Bytes, std::uint32_t> cases[] = {
      {1_B, 1},     {1_MiB, 1},    {255_MiB, 1},    {256_MiB, 1},  {511_MiB, 1},
      {512_MiB, 2}, {1023_MiB, 2}, {1_GiB, 4},      {2047_MiB, 4}, {2_GiB, 8},
      {32_GiB, 8},  {1_TiB, 8},    {kUnlimited, 8}, {0_B, 1},
  };
  for (const auto& [size, divisions] : cases) {
    EXPECT_EQ(config.RoundupDivisions(size), divisions) << ToString(size);
  }
  EXPECT_EQ(Parsed(config.ToString()), config) << config.ToString();
}

TEST(AllocatorConfigTest, DivisionsThatAreNotNamedAreOff) {
  const AllocatorConfig config = Parsed("roundup_power2_divisions:[2:2,8:8,1048576:16]");
  EXPECT_EQ(config.RoundupDivisions(1_MiB), 2U);
  EXPECT_EQ(config.RoundupDivisions(2_MiB), 2U);
  EXPECT_EQ(config.RoundupDivisions(4_MiB), 0U);
  EXPECT_EQ(config.RoundupDivisions(8_MiB), 8U);
  EXPECT_EQ(config.RoundupDivisions(16_MiB), 0U);
  EXPECT_EQ(config.RoundupDivisions(64_GiB), 16U);
  EXPECT_EQ(Parsed("roundup_power2_divisions:[>:4]").RoundupDivisions(1_B), 4U);
  EXPECT_EQ(Parsed("roundup_power2_divisions:[]"), AllocatorConfig());
  for (const char* wrong : {"[3:2]", "[4:3]", "[4]", "[x:2]", "[<:2]", "[4:-1]", "[0:2]"}) {
    EXPECT_THAT(ParseError(std::string("roundup_power2_divisions:") + wrong),
                StartsWith("KEEL_ALLOC_CONF: key 'roundup_power2_divisions': "))
        << wrong;
  }
}

TEST(AllocatorConfigTest, RoundingFollowsTheSegmentUnlessGiven) {
  EXPECT_EQ(Parsed("large_segment_size_mb:64").max_non_split_rounding, 64_MiB);
  const AllocatorConfig both = Parsed("large_segment_size_mb:64,max_non_split_rounding_mb:20");
  EXPECT_EQ(both.max_non_split_rounding, 20_MiB);
  EXPECT_EQ(Parsed(both.ToString()), both) << both.ToString();
}

TEST(AllocatorConfigTest, BooleansAreReadAlikeForEveryKey) {
  for (const AllocatorKey& key : DescribeAllocatorKeys()) {
    if (key.values != "true or false" && key.name != "debug") continue;
    const std::string rest = key.name == "history_stacks" ? ",history:1" : "";
    const AllocatorConfig on = Parsed(key.name + ":true" + rest);
    for (const char* word : {"True", "1", "on", "YES"}) {
      EXPECT_EQ(Parsed(key.name + ":" + word + rest), on) << key.name << ":" << word;
    }
    const AllocatorConfig off = Parsed(key.name + ":false" + rest);
    for (const char* word : {"False", "0", "off", "No"}) {
      EXPECT_EQ(Parsed(key.name + ":" + word + rest), off) << key.name << ":" << word;
    }
    EXPECT_EQ(on == off, !key.no_effect.empty()) << key.name;
  }
}

// A configuration that PyTorch takes must not stop the program, only say what it cannot do.
TEST(AllocatorConfigTest, AConfigurationOfPyTorchIsTaken) {
  const AllocatorConfig config = Parsed(
      "expandable_segments:True,max_split_size_mb:512,garbage_collection_threshold:0.6,"
      "roundup_power2_divisions:[256:1,512:2,1024:4,>:8],"
      "release_lock_on_cudamalloc:True,"                               // vendor-ok: PyTorch's key
      "pinned_use_cuda_host_register:True,"                            // vendor-ok: PyTorch's key
      "pinned_num_register_threads:8,throw_on_cudamalloc_oom:False");  // vendor-ok: PyTorch's key
  EXPECT_TRUE(config.expandable_segments);
  EXPECT_EQ(config.max_split_size, 512_MiB);
  EXPECT_EQ(config.warnings.size(), 2U);
}

TEST(AllocatorConfigTest, WithoutPoolsTheirKeysWarn) {
  const AllocatorConfig config = Parsed("backend:passthrough,max_split_size_mb:64,limit:1GiB");
  EXPECT_THAT(config.warnings, ElementsAre(HasSubstr("max_split_size_mb has no effect: backend")));
}

TEST(AllocatorConfigTest, RandomTextIsRefusedOrUnderstood) {
  const std::vector<AllocatorKey> keys = DescribeAllocatorKeys();
  const char* values[] = {"1",   "0",  "20", "128",       "true", "unlimited", "64MiB",
                          "0.5", "on", "x",  "[4:2,>:8]", "-1",   "1e3",       "full"};
  std::mt19937 random(5);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (std::size_t n = 1 + random() % 3; n > 0; --n) {
      text += (text.empty() ? "" : ",") + keys[random() % keys.size()].name + ":" +
              values[random() % std::size(values)];
    }
    const Result<AllocatorConfig> config = AllocatorConfig::Parse(text, "RANDOM");
    if (!config.ok()) {
      ASSERT_THAT(std::string(config.status().message()), StartsWith("RANDOM: "));
      continue;
    }
    ++accepted;
    const Result<AllocatorConfig> again = AllocatorConfig::Parse(config->ToString());
    ASSERT_TRUE(again.ok()) << text << " as " << config->ToString();
    ASSERT_EQ(again->ToString(), config->ToString()) << text;
  }
  EXPECT_GT(accepted, 500);
}

TEST(AllocatorConfigTest, TheEnvironmentIsReadOnce) {
  EXPECT_EXIT(
      {
        setenv("KEEL_ALLOC_CONF", "limit:3GiB", 1);
        const bool first = AllocatorConfig::FromEnvironment()->limit == 3_GiB;
        setenv("KEEL_ALLOC_CONF", "limit:4GiB", 1);
        const bool second = AllocatorConfig::FromEnvironment()->limit == 3_GiB;
        std::exit(first && second ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        setenv("KEEL_ALLOC_CONF", "limit:none", 1);
        std::exit(AllocatorConfig::FromEnvironment().ok() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        setenv("KEEL_ALLOC_CONF", "backend:passthrough,front_cache:0", 1);
        std::exit(AllocatorConfig::FromEnvironment().ok() ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "KEEL_ALLOC_CONF: front_cache has no effect");
}

TEST(AllocatorConfigTest, ThePageListsEveryKeyAndNoOther) {
  std::vector<std::string> acting;
  std::vector<std::string> ignored;
  for (const AllocatorKey& key : DescribeAllocatorKeys()) {
    const std::string start = "| `" + key.name + "` | ";
    if (key.no_effect.empty()) {
      acting.push_back(start + key.values + " | " + key.default_value + " | " +
                       std::string(key.meaning) + " |");
    } else {
      ignored.push_back(start + std::string(key.meaning) + " | " + std::string(key.no_effect) +
                        " |");
    }
  }
  const std::string page = KEEL_DOCS "/configuration.md";
  EXPECT_EQ(DocsTableRows(page, "Keys"), acting) << JoinRows(acting);
  EXPECT_EQ(DocsTableRows(page, "Keys without effect"), ignored) << JoinRows(ignored);
}

}  // namespace
}  // namespace keel::memory
