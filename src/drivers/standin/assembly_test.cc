#include "drivers/standin/assembly.h"

#include <gtest/gtest.h>

#include <string>

namespace keel::standin {
namespace {

constexpr std::string_view kHead = ".version 6.0\n.target sm_70\n.address_size 64\n";

std::optional<std::vector<KernelEntry>> Parse(std::string_view body) {
  return ParseAssembly(std::string(kHead) + std::string(body));
}

TEST(AssemblyTest, FindsEntriesAndTheSizesOfTheirParameters) {
  const auto entries = Parse(
      ".visible .entry first(\n"
      "  .param .u64 first_param_0,\n"
      "  .param .f32 first_param_1,\n"
      "  .param .align 8 .b8 first_param_2[24],\n"
      "  .param .u64 .ptr .global .align 16 first_param_3\n"
      ")\n"
      "{ .reg .pred %p<3>; { ld.param.u64 %rd1, [first_param_0]; } ret; }\n"
      ".entry second() { ret; }\n");
  ASSERT_TRUE(entries.has_value());
  ASSERT_EQ(entries->size(), 2U);
  EXPECT_EQ((*entries)[0].name, "first");
  EXPECT_EQ((*entries)[0].parameter_sizes, (std::vector<std::uint32_t>{8, 4, 24, 8}));
  EXPECT_EQ((*entries)[1].name, "second");
  EXPECT_TRUE((*entries)[1].parameter_sizes.empty());
}

TEST(AssemblyTest, CommentsAreSpace) {
  const auto entries = ParseAssembly(
      "// a line\n/* .entry no( */ .version 6.0 // x\n.target sm_70\n"
      ".entry /* here */ yes(.param /* a */ .u32 x // .param\n) { }");
  ASSERT_TRUE(entries.has_value());
  ASSERT_EQ(entries->size(), 1U);
  EXPECT_EQ(entries->front().name, "yes");
  EXPECT_EQ(entries->front().parameter_sizes, (std::vector<std::uint32_t>{4}));
}

TEST(AssemblyTest, WithoutEntriesItIsAModule) {
  const auto entries = Parse(".func helper() { ret; }");
  ASSERT_TRUE(entries.has_value());
  EXPECT_TRUE(entries->empty());
}

TEST(AssemblyTest, WhatCannotBeReadIsNone) {
  EXPECT_FALSE(ParseAssembly(""));
  EXPECT_FALSE(ParseAssembly("garbage"));
  EXPECT_FALSE(ParseAssembly(".version 6.0\ngarbage"));
  EXPECT_FALSE(ParseAssembly(".target sm_70\n.version 6.0\n"));
  EXPECT_FALSE(Parse(".entry open() {"));
  EXPECT_FALSE(Parse("}"));
  EXPECT_FALSE(Parse(".entry (.param .u64 a) { }"));
  EXPECT_FALSE(Parse(".entry f(.param .u64 a"));
  EXPECT_FALSE(Parse(".entry f(.param .u64) { }"));
  EXPECT_FALSE(Parse(".entry f(.param .texref a) { }"));
  EXPECT_FALSE(Parse(".entry f(.param .u64 a .param .u64 b) { }"));
  EXPECT_FALSE(Parse(".entry f(.param .b8 a[x]) { }"));
  EXPECT_FALSE(Parse(".entry f(.reg .u64 a) { }"));
}

}  // namespace
}  // namespace keel::standin
