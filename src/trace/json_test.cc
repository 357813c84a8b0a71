#include "trace/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace keel::trace {
namespace {

using ::testing::HasSubstr;
using Kind = Value::Kind;

std::string Parsed(std::string_view text, Bytes limit = 1_GiB) {
  const auto document = ParseJson(text, limit);
  return document.ok() ? "OK" : document.status().ToString();
}

TEST(JsonTest, EveryKindOfValueIsRead) {
  const auto document = ParseJson(
      R"( {"a": [1, -2, 1.5, true, false, null, 18446744073709551615, 9223372036854775807],
           "s": "gr\u00fcn \"\n", "e": "", "n": {"x": {}}, "a2": [], "s2": "s"} )",
      1_GiB);
  ASSERT_TRUE(document.ok()) << document.status().ToString();
  const Value root = document->root();
  ASSERT_EQ(root.kind(), Kind::kDict);
  EXPECT_EQ(root.size(), 6u);
  const Value a = *root.Find("a");
  ASSERT_EQ(a.kind(), Kind::kList);
  ASSERT_EQ(a.size(), 8u);
  EXPECT_EQ(a[0].AsInt(), 1);
  EXPECT_EQ(a[1].AsInt(), -2);
  EXPECT_EQ(a[1].AsUnsigned(), std::nullopt);
  EXPECT_EQ(a[2].AsFloat(), 1.5);
  EXPECT_EQ(a[3].kind(), Kind::kBool);
  EXPECT_EQ(a[3].AsInt(), 1);
  EXPECT_EQ(a[4].AsInt(), 0);
  EXPECT_TRUE(a[5].is_none());
  EXPECT_EQ(a[6].AsUnsigned(), UINT64_MAX);
  EXPECT_EQ(a[6].AsInt(), std::nullopt);
  EXPECT_EQ(a[7].AsInt(), INT64_MAX);
  EXPECT_EQ(root.Find("s")->AsString(), "gr\xc3\xbcn \"\n");
  EXPECT_EQ(root.Find("e")->AsString(), "");
  EXPECT_EQ(root.Find("n")->Find("x")->size(), 0u);
  EXPECT_EQ(root.Find("a2")->size(), 0u);
  // The string "s" is there as a key and as a value, once.
  EXPECT_EQ(root.key(1).id(), root.Find("s2")->id());
  // Containers know where they start.
  EXPECT_EQ(root.offset(), 1u);
  EXPECT_EQ(a.offset(), 7u);
}

TEST(JsonTest, AByteOrderMarkMayComeFirst) {
  const auto document = ParseJson("\xef\xbb\xbf[]", 1_GiB);
  ASSERT_TRUE(document.ok()) << document.status().ToString();
  EXPECT_EQ(document->root().offset(), 3u);
}

TEST(JsonTest, OfTwoEqualKeysTheLastCounts) {
  const auto document = ParseJson(R"({"a": 1, "a": 2})", 1_GiB);
  ASSERT_TRUE(document.ok());
  EXPECT_EQ(document->root().Find("a")->AsInt(), 2);
}

TEST(JsonTest, WhatIsBrokenIsNamedWithItsPlace) {
  EXPECT_THAT(Parsed(""), HasSubstr("JSON, near byte 0: the text ends too early"));
  EXPECT_THAT(Parsed("{\"a\": [1, 2"), HasSubstr("near byte 11: the text ends too early"));
  EXPECT_THAT(Parsed("{\"a\""), HasSubstr("ends too early"));
  EXPECT_THAT(Parsed("{\"a\": nul, \"b\": 1}"), HasSubstr("near byte 10: this is not JSON"));
  EXPECT_THAT(Parsed("{} {}"), HasSubstr("near byte 4"));
  EXPECT_THAT(Parsed("[1,]  "), HasSubstr("near byte 4"));
  EXPECT_THAT(Parsed("[\"\xff\"]  "), HasSubstr("near byte 3"));
  EXPECT_EQ(Parsed("[1]"), "OK");
}

TEST(JsonTest, DepthIsBounded) {
  EXPECT_EQ(Parsed(std::string(64, '[') + std::string(64, ']')), "OK");
  EXPECT_THAT(Parsed(std::string(65, '[') + std::string(65, ']')),
              HasSubstr("near byte 65: the values are nested deeper than 64"));
  EXPECT_THAT(Parsed(std::string(10'000'000, '[')), HasSubstr("nested deeper"));
}

TEST(JsonTest, MemoryIsBounded) {
  std::string text = "[";
  for (int i = 0; i < 100'000; ++i) text += "[],";
  text += "0]";
  EXPECT_EQ(Parsed(text), "OK");
  EXPECT_THAT(Parsed(text, 1_MiB), HasSubstr("OUT_OF_RANGE: JSON, near byte"));
  EXPECT_THAT(Parsed("\"" + std::string(100'000, 'x') + "\"", Bytes(50'000)),
              HasSubstr("OUT_OF_RANGE"));
}

}  // namespace
}  // namespace keel::trace
