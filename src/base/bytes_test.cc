#include "keel/base/bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <unordered_set>

namespace keel {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

TEST(BytesTest, ParsesNumbersAndUnits) {
  const std::pair<const char*, Bytes> cases[] = {
      {"0", 0_B},
      {"4096", 4_KiB},
      {" 4096 ", 4_KiB},
      {"12B", 12_B},
      {"12 b", 12_B},
      {"20 MiB", 20_MiB},
      {"20MiB", 20_MiB},
      {"20\tmb", 20_MiB},
      {"64k", 64_KiB},
      {"64K", 64_KiB},
      {"64KB", 64_KiB},
      {"1.5 GiB", 1536_MiB},
      {"1.50g", 1536_MiB},
      {"0.5k", 512_B},
      {"3T", 3_TiB},
      {"3.25tib", 3_TiB + 256_GiB},
      {"007", 7_B},
      {"10.000", 10_B},
      {"18446744073709551615", Bytes(kMax)},
      {"16777215 TiB", Bytes(std::uint64_t{16777215} << 40)},
      // One byte, in the unit where it has most digits.
      {"0.0000000000009094947017729282379150390625 TiB", 1_B},
  };
  for (const auto& [text, expected] : cases) {
    const Result<Bytes> parsed = ParseBytes(text);
    ASSERT_TRUE(parsed.ok()) << text << ": " << parsed.status().ToString();
    EXPECT_EQ(parsed->count(), expected.count()) << text;
  }
}

TEST(BytesTest, BadTextIsNamedWithTheProblem) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "does not start with"},
      {"   ", "does not start with"},
      {"-1", "does not start with"},
      {"+1", "does not start with"},
      {".5k", "does not start with"},
      {"MiB", "does not start with"},
      {"0x10", "unknown unit 'x10'"},
      {"1.", "no digits after"},
      {"1.k", "no digits after"},
      {"1,5k", "unknown unit ',5k'"},
      {"5 XB", "unknown unit 'XB'"},
      {"5 KiBi", "unknown unit 'KiBi'"},
      {"5 bb", "unknown unit 'bb'"},
      {"1 2", "unknown unit '2'"},
      {"1.5", "whole number of bytes"},
      {"1.5B", "whole number of bytes"},
      {"0.0001k", "whole number of bytes"},
      {"18446744073709551616", "2^64"},
      {"99999999999999999999999999", "2^64"},
      {"16777216 TiB", "2^64"},
      {"16777215.9999999999999999999 TiB", "whole number of bytes"},
      {"1e3", "unknown unit 'e3'"},
  };
  for (const auto& [text, problem] : cases) {
    const Result<Bytes> parsed = ParseBytes(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("'" + std::string(text) + "'"));
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(problem)) << text;
  }
}

TEST(BytesTest, ForeignBytesAreEscapedAndCutInErrors) {
  const Result<Bytes> odd = ParseBytes(std::string_view("1 \0\xff", 4));
  EXPECT_THAT(std::string(odd.status().message()), HasSubstr("'1 \\x00\\xff'"));
  const Result<Bytes> endless = ParseBytes(std::string(100'000, 'z'));
  EXPECT_LT(endless.status().message().size(), 200U);
}

TEST(BytesTest, Prints) {
  EXPECT_EQ(ToString(0_B), "0 B");
  EXPECT_EQ(ToString(512_B), "512 B");
  EXPECT_EQ(ToString(1023_B), "1023 B");
  EXPECT_EQ(ToString(1_KiB), "1 KiB");
  EXPECT_EQ(ToString(20_MiB), "20 MiB");
  EXPECT_EQ(ToString(1536_MiB), "1.5 GiB");
  EXPECT_EQ(ToString(1_GiB + 256_MiB), "1.25 GiB");
  EXPECT_EQ(ToString(1_KiB + 52_B), "1.05 KiB");
  EXPECT_EQ(ToString(1_MiB - 1_B), "1023.99 KiB");
  EXPECT_EQ(ToString(2048_TiB), "2048 TiB");
  EXPECT_EQ(ToString(Bytes(kMax)), "16777215.99 TiB");
}

TEST(BytesTest, WhatIsPrintedCanBeParsed) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    // Quarters of a unit are printed exactly.
    const int unit = static_cast<int>(random() % 5) * 10;
    const std::uint64_t quarters = 1 + random() % (std::uint64_t{1} << 12);
    const Bytes exact(unit == 0 ? quarters % 1024 : quarters << (unit - 2));
    const Result<Bytes> back = ParseBytes(ToString(exact));
    ASSERT_TRUE(back.ok()) << back.status().ToString();
    ASSERT_EQ(back->count(), exact.count()) << ToString(exact);

    const Bytes plain(random() >> (random() % 64));
    const Result<Bytes> counted = ParseBytes(std::to_string(plain.count()));
    ASSERT_TRUE(counted.ok());
    ASSERT_EQ(counted->count(), plain.count());
  }
}

TEST(BytesTest, CheckedArithmeticSaysWhenItOverflows) {
  EXPECT_EQ(CheckedAdd(Bytes(kMax - 1), 1_B), Bytes(kMax));
  EXPECT_EQ(CheckedAdd(Bytes(kMax), 1_B), std::nullopt);
  EXPECT_EQ(CheckedMultiply(1_GiB, 4), 4_GiB);
  EXPECT_EQ(CheckedMultiply(1_GiB, std::uint64_t{1} << 34), std::nullopt);
}

TEST(BytesTest, Aligns) {
  EXPECT_EQ(AlignUp(0_B, 2_MiB), 0_B);
  EXPECT_EQ(AlignUp(1_B, 2_MiB), 2_MiB);
  EXPECT_EQ(AlignUp(2_MiB, 2_MiB), 2_MiB);
  EXPECT_EQ(AlignUp(10_B, 3_B), 12_B);
  EXPECT_EQ(AlignUp(Bytes(kMax), 2_B), std::nullopt);
  EXPECT_EQ(AlignDown(Bytes(4_MiB - 1_B), 2_MiB), 2_MiB);
  EXPECT_TRUE(IsAligned(DeviceAddress(0x4000), 4_KiB));
  EXPECT_FALSE(IsAligned(DeviceAddress(0x4001), 4_KiB));
  EXPECT_TRUE(IsPowerOfTwo(2_MiB));
  EXPECT_FALSE(IsPowerOfTwo(0_B));
  EXPECT_FALSE(IsPowerOfTwo(3_KiB));
}

TEST(BytesTest, OffsetsAndAddressesMoveByBytes) {
  EXPECT_EQ(Offset(8) + 8_B, Offset(16));
  EXPECT_EQ(Offset(16) - Offset(6), 10_B);
  EXPECT_EQ(DeviceAddress(0x1000) + 16_B, DeviceAddress(0x1010));
  EXPECT_EQ(DeviceAddress(0x1010) - DeviceAddress(0x1000), 16_B);
  EXPECT_FALSE(DeviceAddress());
  EXPECT_EQ(ToString(DeviceAddress(0x7f0012340000)), "0x7f0012340000");
  EXPECT_EQ(std::unordered_set<DeviceAddress>({DeviceAddress(1), DeviceAddress(1)}).size(), 1U);
}

}  // namespace
}  // namespace keel
