#include "keel/base/config_string.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace keel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

ConfigString Parsed(std::string_view text) {
  Result<ConfigString> config = ConfigString::Parse("TEST", text);
  EXPECT_TRUE(config.ok()) << text << ": " << config.status().ToString();
  return config.ok() ? *std::move(config) : ConfigString();
}

std::string ParseError(std::string_view text) {
  const Result<ConfigString> config = ConfigString::Parse("TEST", text);
  EXPECT_FALSE(config.ok()) << text;
  EXPECT_EQ(config.status().code(), StatusCode::kInvalidArgument);
  return std::string(config.status().message());
}

std::vector<std::pair<std::string, std::string>> Items(const ConfigString& config,
                                                       std::string_view key) {
  std::vector<std::pair<std::string, std::string>> items;
  const ConfigString::Entry* entry = config.Find(key);
  if (entry == nullptr || !entry->is_list) return items;
  for (const ConfigString::Item& item : entry->items) items.emplace_back(item.key, item.value);
  return items;
}

TEST(ConfigStringTest, NothingIsNoEntries) {
  EXPECT_TRUE(Parsed("").entries().empty());
  EXPECT_TRUE(Parsed(" \t\n").entries().empty());
}

TEST(ConfigStringTest, EntriesKeepTheirOrderAndLoseTheirSpaces) {
  const ConfigString config = Parsed(" devices : 2 , memory: 1.5 GiB,a.b_C9:x:y ");
  ASSERT_EQ(config.entries().size(), 3U);
  EXPECT_EQ(config.source(), "TEST");
  EXPECT_EQ(config.entries()[0].key, "devices");
  EXPECT_EQ(config.entries()[0].value, "2");
  EXPECT_EQ(config.entries()[1].key, "memory");
  EXPECT_EQ(config.entries()[1].value, "1.5 GiB");
  EXPECT_EQ(config.entries()[2].key, "a.b_C9");
  EXPECT_EQ(config.entries()[2].value, "x:y");
  EXPECT_EQ(config.Find("none"), nullptr);
}

TEST(ConfigStringTest, ListsHoldTextAndPairs) {
  const ConfigString config =
      Parsed("roundup_power2_divisions:[256:1,512:2,>:8], plain : [ a , b c ] ,empty:[],x:1");
  const std::vector<std::pair<std::string, std::string>> divisions = {
      {"256", "1"}, {"512", "2"}, {">", "8"}};
  EXPECT_EQ(Items(config, "roundup_power2_divisions"), divisions);
  const std::vector<std::pair<std::string, std::string>> plain = {{"", "a"}, {"", "b c"}};
  EXPECT_EQ(Items(config, "plain"), plain);
  ASSERT_NE(config.Find("empty"), nullptr);
  EXPECT_TRUE(config.Find("empty")->is_list);
  EXPECT_TRUE(config.Find("empty")->items.empty());
  EXPECT_EQ(config.Find("x")->value, "1");
}

TEST(ConfigStringTest, ErrorsStartWithTheSourceAndNameThePlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"a", "'a' is not of the form key:value"},
      {"a:1,", "an entry is empty"},
      {",a:1", "an entry is empty"},
      {"a:1,,b:2", "an entry is empty"},
      {":1", "'' is not a key"},
      {"a b:1", "'a b' is not a key"},
      {"a-b:1", "'a-b' is not a key"},
      {"a:", "key 'a' has no value"},
      {"a: ,b:1", "key 'a' has no value"},
      {"a:1,b:2,a:3", "key 'a' stands twice"},
      {"a:[1,a:2", "key 'a': the list is not closed"},
      {"a:[1", "key 'a': the list is not closed"},
      {"a:[1,[2]]", "key 'a': the item '' is neither"},
      {"a:[b[2]]", "key 'a': the list is not closed"},
      {"a:[1,,2]", "key 'a': the item ''"},
      {"a:[:1]", "key 'a': the item ':1'"},
      {"a:[1:]", "key 'a': the item '1:'"},
      {"a:[1:2:3]", "key 'a': the item '1:2:3'"},
      {"a:[1]x", "key 'a': 'x' after the list"},
      {"a:1]", "key 'a': ']' inside a value"},
      {"a:b[1]", "key 'a': '[' inside a value"},
      {"[a:1]", "an entry is empty"},
      {"]", "an entry is empty"},
  };
  for (const auto& [text, problem] : cases) {
    EXPECT_THAT(ParseError(text), AllOf(StartsWith("TEST: "), HasSubstr(problem))) << text;
  }
}

// Random text of the grammar's own characters: nothing crashes, and what is accepted can be
// written down and read again.
TEST(ConfigStringTest, SurvivesRandomBytes) {
  constexpr std::string_view kAlphabet = "ab:,[] \t1.\0\xff";
  std::mt19937 random(11);
  int accepted = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string text;
    for (std::size_t n = random() % 24; n > 0; --n) {
      text += i % 2 == 0 ? kAlphabet[random() % kAlphabet.size()] : static_cast<char>(random());
    }
    const Result<ConfigString> config = ConfigString::Parse("RANDOM", text);
    if (!config.ok()) {
      ASSERT_THAT(std::string(config.status().message()), StartsWith("RANDOM: "));
      continue;
    }
    ++accepted;
    std::string again;
    for (const ConfigString::Entry& entry : config->entries()) {
      again += (again.empty() ? "" : ",") + entry.key + ":" + entry.value;
      if (!entry.is_list) continue;
      std::string items;
      for (const ConfigString::Item& item : entry.items) {
        items += (items.empty() ? "" : ",") + (item.key.empty() ? "" : item.key + ":") + item.value;
      }
      again += "[" + items + "]";
    }
    const Result<ConfigString> second = ConfigString::Parse("RANDOM", again);
    ASSERT_TRUE(second.ok()) << again << ": " << second.status().ToString();
    ASSERT_EQ(second->entries().size(), config->entries().size()) << again;
  }
  EXPECT_GT(accepted, 100);
}

TEST(ConfigReaderTest, TakesTypedValues) {
  const ConfigString config = Parsed(
      "size:2MiB,flag:ON,off:No,count:-3,plus:+4,big:18446744073709551615,ratio:0.25,name:x y,"
      "list:[1,a:b]");
  Bytes size;
  bool flag = false;
  bool off = true;
  std::int64_t count = 0;
  std::int64_t plus = 0;
  std::uint64_t big = 0;
  double ratio = 0;
  std::string name;
  std::vector<ConfigString::Item> list;
  ConfigReader reader(config);
  reader.Take("size", &size);
  reader.Take("flag", &flag);
  reader.Take("off", &off);
  reader.Take("count", &count, -5, 5);
  reader.Take("plus", &plus, -5, 5);
  reader.Take("big", &big);
  reader.Take("ratio", &ratio, 0, 1);
  reader.Take("name", &name);
  reader.Take("list", &list);
  ASSERT_TRUE(reader.Finish().ok()) << reader.Finish().ToString();
  EXPECT_EQ(size, 2_MiB);
  EXPECT_TRUE(flag);
  EXPECT_FALSE(off);
  EXPECT_EQ(count, -3);
  EXPECT_EQ(plus, 4);
  EXPECT_EQ(big, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(ratio, 0.25);
  EXPECT_EQ(name, "x y");
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[1].key, "a");
}

TEST(ConfigReaderTest, AnAbsentKeyLeavesItsTarget) {
  const ConfigString config = Parsed("");
  Bytes size = 7_B;
  bool flag = true;
  std::string name = "before";
  ConfigReader reader(config);
  reader.Take("size", &size);
  reader.Take("flag", &flag);
  reader.Take("name", &name);
  EXPECT_TRUE(reader.Finish().ok());
  EXPECT_EQ(size, 7_B);
  EXPECT_TRUE(flag);
  EXPECT_EQ(name, "before");
}

TEST(ConfigReaderTest, BooleansAreReadTheSameInEveryCase) {
  for (const char* text : {"true", "True", "1", "on", "yes", "YES"}) {
    bool value = false;
    const ConfigString config = Parsed(std::string("b:") + text);
    ConfigReader reader(config);
    reader.Take("b", &value);
    EXPECT_TRUE(reader.Finish().ok()) << text;
    EXPECT_TRUE(value) << text;
  }
  for (const char* text : {"false", "FALSE", "0", "off", "no", "Off"}) {
    bool value = true;
    const ConfigString config = Parsed(std::string("b:") + text);
    ConfigReader reader(config);
    reader.Take("b", &value);
    EXPECT_TRUE(reader.Finish().ok()) << text;
    EXPECT_FALSE(value) << text;
  }
}

template <class... Limits, class T>
std::string TakeError(std::string_view text, T target, Limits... limits) {
  const T before = target;
  const ConfigString config = Parsed(text);
  ConfigReader reader(config);
  reader.Take("key", &target, limits...);
  EXPECT_EQ(target, before) << text;
  EXPECT_EQ(reader.Finish().code(), StatusCode::kInvalidArgument) << text;
  return std::string(reader.Finish().message());
}

TEST(ConfigReaderTest, BadValuesNameSourceKeyValueAndWhatIsRight) {
  EXPECT_EQ(TakeError("key:maybe", true),
            "TEST: key 'key': 'maybe' is neither true/1/on/yes nor false/0/off/no");
  EXPECT_THAT(TakeError("key:2 parsecs", 5_B),
              AllOf(StartsWith("TEST: key 'key': "), HasSubstr("'2 parsecs'"), HasSubstr("MiB")));
  const std::int64_t whole = 1;
  for (const char* text : {"key:65", "key:0", "key:x", "key:1.5", "key:1 2", "key:+-1", "key:0x1",
                           "key:99999999999999999999"}) {
    EXPECT_THAT(TakeError(text, whole, std::int64_t{1}, std::int64_t{64}),
                AllOf(StartsWith("TEST: key 'key': "), HasSubstr("from 1 to 64")));
  }
  for (const char* text : {"key:-1", "key:18446744073709551616", "key:+"}) {
    EXPECT_THAT(TakeError(text, std::uint64_t{3}), HasSubstr("2^64-1"));
  }
  for (const char* text : {"key:nan", "key:inf", "key:1.01", "key:-0.1", "key:1e999", "key:0.5x"}) {
    EXPECT_THAT(TakeError(text, 0.5, 0.0, 1.0), HasSubstr("a number from 0 to 1"));
  }
  EXPECT_THAT(TakeError("key:[1]", std::string("s")), HasSubstr("not a list"));
  const ConfigString config = Parsed("key:1");
  ConfigReader reader(config);
  std::vector<ConfigString::Item> list;
  reader.Take("key", &list);
  EXPECT_THAT(std::string(reader.Finish().message()), HasSubstr("not a list in brackets"));
}

TEST(ConfigReaderTest, AnUnknownKeyIsAnErrorThatListsTheKnownOnes) {
  const ConfigString config = Parsed("devices:1,devcies:2");
  std::uint64_t devices = 0;
  Bytes memory;
  ConfigReader reader(config);
  reader.Take("devices", &devices);
  reader.Take("memory", &memory);
  EXPECT_EQ(reader.Finish().ToString(),
            "INVALID_ARGUMENT: TEST: unknown key 'devcies' (did you mean 'devices'?); known keys: "
            "devices, memory");
}

TEST(ConfigReaderTest, TheFirstMistakeWinsAndLaterTargetsStay) {
  const ConfigString config = Parsed("a:x,b:2,unknown:1");
  std::uint64_t a = 8;
  std::uint64_t b = 9;
  ConfigReader reader(config);
  reader.Take("a", &a);
  reader.Take("b", &b);
  reader.Reject("b", "does not go with a");
  EXPECT_THAT(std::string(reader.Finish().message()), StartsWith("TEST: key 'a': "));
  EXPECT_EQ(a, 8U);
  EXPECT_EQ(b, 9U);
}

TEST(ConfigReaderTest, RejectReportsAcrossKeys) {
  const ConfigString config = Parsed("a:1");
  std::uint64_t a = 0;
  ConfigReader reader(config);
  reader.Take("a", &a);
  reader.Reject("a", "must be even");
  EXPECT_EQ(reader.Finish().message(), "TEST: key 'a': must be even");
}

}  // namespace
}  // namespace keel
