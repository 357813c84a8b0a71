#include "trace/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>

namespace keel::trace {
namespace {

using ::testing::HasSubstr;
using Kind = Value::Kind;

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

// What Python's pickle.dumps(v, protocol) writes, for protocols 1 to 5, of
//   v = {'a': [1, -2, 300, 70000, -5000000000, 2**62, True, False, None, 1.5],
//        't': ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)), 's': 'gr\u00fcn', 'e': '',
//        'n': {'x': {}}}
//   v['same'] = v['a']
constexpr std::string_view kWritten[] = {
    // protocol 1
    "7d71002858010000006171015d7102284b014afeffffff4d2c014a701101004c2d353030303030303030304c"
    "0a4c343631313638363031383432373338373930344c0a4930310a4930300a4e473ff8000000000000655801"
    "0000007471032829284b01747104284b014b02747105284b014b024b03747106284b014b024b034b04747107"
    "747108580100000073710958050000006772c3bc6e710a580100000065710b5800000000710c58010000006e"
    "710d7d710e580100000078710f7d711073580400000073616d6571116802752e",
    // protocol 2
    "80027d71002858010000006171015d7102284b014afeffffff4d2c014a701101008a05000efad5fe8a080000"
    "00000000004088894e473ff800000000000065580100000074710328294b018571044b014b028671054b014b"
    "024b03877106284b014b024b034b04747107747108580100000073710958050000006772c3bc6e710a580100"
    "000065710b5800000000710c58010000006e710d7d710e580100000078710f7d711073580400000073616d65"
    "71116802752e",
    // protocol 3
    "80037d71002858010000006171015d7102284b014afeffffff4d2c014a701101008a05000efad5fe8a080000"
    "00000000004088894e473ff800000000000065580100000074710328294b018571044b014b028671054b014b"
    "024b03877106284b014b024b034b04747107747108580100000073710958050000006772c3bc6e710a580100"
    "000065710b5800000000710c58010000006e710d7d710e580100000078710f7d711073580400000073616d65"
    "71116802752e",
    // protocol 4
    "80049587000000000000007d94288c0161945d94284b014afeffffff4d2c014a701101008a05000efad5fe8a"
    "08000000000000004088894e473ff8000000000000658c01749428294b0185944b014b0286944b014b024b03"
    "8794284b014b024b034b04749474948c0173948c056772c3bc6e948c0165948c00948c016e947d948c017894"
    "7d94738c0473616d65946802752e",
    // protocol 5
    "80059587000000000000007d94288c0161945d94284b014afeffffff4d2c014a701101008a05000efad5fe8a"
    "08000000000000004088894e473ff8000000000000658c01749428294b0185944b014b0286944b014b024b03"
    "8794284b014b024b034b04749474948c0173948c056772c3bc6e948c0165948c00948c016e947d948c017894"
    "7d94738c0473616d65946802752e",
};

Result<Document> Parse(std::string bytes) { return ParsePickle(std::move(bytes), 1_GiB); }

std::string Parsed(const std::string& bytes) {
  const auto document = Parse(bytes);
  return document.ok() ? "OK" : std::string(document.status().message());
}

TEST(PickleTest, EveryProtocolIsRead) {
  for (const std::string_view hex : kWritten) {
    SCOPED_TRACE(hex.substr(0, 16));
    const auto document = Parse(FromHex(hex));
    ASSERT_TRUE(document.ok()) << document.status().ToString();
    const Value root = document->root();
    ASSERT_EQ(root.kind(), Kind::kDict);
    EXPECT_EQ(root.size(), 6u);
    const Value a = *root.Find("a");
    ASSERT_EQ(a.kind(), Kind::kList);
    ASSERT_EQ(a.size(), 10u);
    const std::int64_t integers[] = {1, -2, 300, 70000, -5000000000, std::int64_t{1} << 62};
    for (std::size_t i = 0; i < std::size(integers); ++i) {
      EXPECT_EQ(a[i].kind(), Kind::kInt);
      EXPECT_EQ(a[i].AsInt(), integers[i]);
    }
    EXPECT_EQ(a[6].kind(), document->root().Find("a")->operator[](6).kind());
    EXPECT_EQ(a[6].AsInt(), 1);
    EXPECT_EQ(a[7].AsInt(), 0);
    EXPECT_TRUE(a[8].is_none());
    EXPECT_EQ(a[9].AsFloat(), 1.5);
    EXPECT_EQ(a[9].AsInt(), std::nullopt);
    const Value tuples = *root.Find("t");
    ASSERT_EQ(tuples.size(), 5u);
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(tuples[i].kind(), Kind::kTuple);
      ASSERT_EQ(tuples[i].size(), i);
      for (std::size_t k = 0; k < i; ++k) {
        EXPECT_EQ(tuples[i][k].AsInt(), static_cast<std::int64_t>(k + 1));
      }
    }
    EXPECT_EQ(root.Find("s")->AsString(), "gr\xc3\xbcn");
    EXPECT_EQ(root.Find("e")->AsString(), "");
    EXPECT_EQ(root.Find("n")->Find("x")->size(), 0u);
    EXPECT_EQ(root.Find("same")->size(), 10u);
    EXPECT_EQ(root.Find("absent"), std::nullopt);
    EXPECT_EQ(root.key(0).AsString(), "a");
  }
}

TEST(PickleTest, TextOfTheFirstProtocolIsRead) {
  const auto document = Parse("(lp0\nI7\naI01\naL-12L\naF2.5\naVtext\np1\nag1\na.");
  ASSERT_TRUE(document.ok()) << document.status().ToString();
  const Value root = document->root();
  ASSERT_EQ(root.size(), 6u);
  EXPECT_EQ(root[0].AsInt(), 7);
  EXPECT_EQ(root[1].kind(), Kind::kBool);
  EXPECT_EQ(root[2].AsInt(), -12);
  EXPECT_EQ(root[3].AsFloat(), 2.5);
  EXPECT_EQ(root[4].AsString(), "text");
  EXPECT_EQ(root[5].AsString(), "text");
}

TEST(PickleTest, WhatWouldRunCodeIsRefusedByName) {
  EXPECT_THAT(Parsed("cos\nsystem\n(S'true'\ntR."), HasSubstr("byte 0: GLOBAL"));
  EXPECT_THAT(Parsed(std::string("\x80\x04\x8c\x02os\x8c\x06system\x93.", 16)),
              HasSubstr("byte 14: STACK_GLOBAL"));
  EXPECT_THAT(Parsed("N)R."), HasSubstr("byte 2: REDUCE"));
  EXPECT_THAT(Parsed("N}b."), HasSubstr("BUILD"));
  EXPECT_THAT(Parsed("Pid\n."), HasSubstr("PERSID"));
  EXPECT_THAT(Parsed("N)\x81."), HasSubstr("NEWOBJ"));
  EXPECT_THAT(Parsed("\x8f."), HasSubstr("EMPTY_SET"));
  EXPECT_THAT(Parsed("\xff."), HasSubstr("0xff is no instruction"));
}

TEST(PickleTest, WhatIsBrokenIsNamedWithItsPlace) {
  EXPECT_THAT(Parsed(""), HasSubstr("byte 0: 1 bytes are wanted and 0 are left"));
  EXPECT_THAT(Parsed("."), HasSubstr("0 values on its stack"));
  EXPECT_THAT(Parsed("NN."), HasSubstr("2 values on its stack"));
  EXPECT_THAT(Parsed("(N."), HasSubstr("ends with"));
  EXPECT_THAT(Parsed("\x80\x09N."), HasSubstr("protocol 9"));
  EXPECT_THAT(Parsed("X\xff\xff\xff\xff."), HasSubstr("4294967295 bytes are wanted"));
  EXPECT_THAT(Parsed("\x8d\xff\xff\xff\xff\xff\xff\xff\xff."), HasSubstr("bytes are wanted"));
  EXPECT_THAT(Parsed("Na."), HasSubstr("byte 1: 2 values are wanted and 1 are on the stack"));
  EXPECT_THAT(Parsed("NNa."), HasSubstr("no list"));
  EXPECT_THAT(Parsed("]NNs."), HasSubstr("no dict"));
  EXPECT_THAT(Parsed("}(Nu."), HasSubstr("a key without a value"));
  EXPECT_THAT(Parsed("(Nd."), HasSubstr("a key without a value"));
  EXPECT_THAT(Parsed("Nt."), HasSubstr("no mark"));
  EXPECT_THAT(Parsed("(Ne."), HasSubstr("nothing to add to"));
  EXPECT_THAT(Parsed("](((a."), HasSubstr("are on the stack"));
  EXPECT_THAT(Parsed("h\x05."), HasSubstr("no memo entry 5"));
  EXPECT_THAT(Parsed("Nr\xff\xff\xff\xff."), HasSubstr("memo entry 4294967295 is out of range"));
  EXPECT_THAT(Parsed("I12x\n."), HasSubstr("'12x' is not a number"));
  EXPECT_THAT(Parsed("I1"), HasSubstr("a line does not end"));
  EXPECT_THAT(Parsed("L99999999999999999999L\n."), HasSubstr("is not a number that fits"));
}

TEST(PickleTest, IntegersOfAnyLengthThatFitAreRead) {
  const auto read = [](std::string_view bytes) {
    std::string pickle = "\x8a";
    pickle += static_cast<char>(bytes.size());
    pickle += bytes;
    pickle += '.';
    const auto document = Parse(pickle);
    return document.ok() ? document->root().AsInt() : std::nullopt;
  };
  EXPECT_EQ(read(""), 0);
  EXPECT_EQ(read("\xff"), -1);
  EXPECT_EQ(read(std::string_view("\xff\x00", 2)), 255);
  EXPECT_EQ(read("\xff\xff\xff\xff\xff\xff\xff\x7f"), INT64_MAX);
  EXPECT_EQ(read(std::string_view("\x00\x00\x00\x00\x00\x00\x00\x80", 8)), INT64_MIN);
  EXPECT_EQ(read(std::string_view("\x01\x00\x00\x00\x00\x00\x00\x00\x00", 9)), 1);
  // 2^64, and less than -2^63.
  EXPECT_EQ(read(std::string_view("\x00\x00\x00\x00\x00\x00\x00\x00\x01", 9)), std::nullopt);
  EXPECT_EQ(read(std::string_view("\xff\xff\xff\xff\xff\xff\xff\x7f\xff", 9)), std::nullopt);
}

// The addresses of some devices have their highest bit set.
TEST(PickleTest, LargeUnsignedIntegersAreRead) {
  const auto document = Parse(std::string("\x8a\x09\x01\0\0\0\0\0\0\x80\0.", 12));
  ASSERT_TRUE(document.ok()) << document.status().ToString();
  EXPECT_EQ(document->root().kind(), Kind::kUnsigned);
  EXPECT_EQ(document->root().AsUnsigned(), 0x8000000000000001u);
  EXPECT_EQ(document->root().AsInt(), std::nullopt);
  EXPECT_EQ(document->root().AsFloat(), 9223372036854775809.0);
  EXPECT_EQ(Parse("L18446744073709551615L\n.")->root().AsUnsigned(), UINT64_MAX);
  EXPECT_EQ(Parse("I-5\n.")->root().AsUnsigned(), std::nullopt);
}

// A byte can make a value of 40, and a file of a few megabytes unpack to gigabytes of them.
TEST(PickleTest, MemoryAndDepthAreBounded) {
  const std::string lists(100'000, ']');
  EXPECT_THAT(Parsed(lists), HasSubstr("1 bytes are wanted"));
  const auto refused = ParsePickle(lists, 1_MiB);
  EXPECT_EQ(refused.status().code(), StatusCode::kOutOfRange);
  EXPECT_THAT(refused.status().ToString(), HasSubstr("pickle, byte 23831: the values take more"));
  EXPECT_EQ(ParsePickle("N" + std::string(100'000, '2'), Bytes(100'000)).status().code(),
            StatusCode::kOutOfRange);
  EXPECT_THAT(Parsed(std::string(2000, '(')), HasSubstr("byte 1000: the values are nested"));
}

// A long list arrives in pieces, between which others are made.
TEST(PickleTest, AListGrowsInPieces) {
  std::string pickle = "]";
  for (int piece = 0; piece < 100; ++piece) {
    pickle += "(";
    for (int i = 0; i < 10; ++i) pickle += "](K" + std::string(1, static_cast<char>(i)) + "e";
    pickle += "e";
  }
  const auto document = Parse(pickle + ".");
  ASSERT_TRUE(document.ok()) << document.status().ToString();
  ASSERT_EQ(document->root().size(), 1000u);
  for (std::size_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(document->root()[i].size(), 1u) << i;
    EXPECT_EQ(document->root()[i][0].AsInt(), static_cast<std::int64_t>(i % 10)) << i;
  }
}

TEST(PickleTest, AListMayContainItself) {
  const auto document =
      Parse(std::string("]\x94h\x00"
                        "a.",
                        6));
  ASSERT_TRUE(document.ok()) << document.status().ToString();
  EXPECT_EQ(document->root()[0][0][0].size(), 1u);
}

TEST(PickleTest, ADocumentMayMove) {
  auto first = Parse("\x8c\x02hi.");
  ASSERT_TRUE(first.ok());
  const Document second = *std::move(first);
  EXPECT_EQ(second.root().AsString(), "hi");
}

// Any damage is an error or another document; never a crash, which the sanitizers would see too.
TEST(PickleTest, DamagedFilesAreRefusedOrRead) {
  std::mt19937 random(7);
  for (const std::string_view hex : kWritten) {
    const std::string good = FromHex(hex);
    for (std::size_t length = 0; length < good.size(); ++length) {
      EXPECT_NE(Parsed(good.substr(0, length)), "OK") << length;
    }
    for (int round = 0; round < 3000; ++round) {
      std::string bad = good;
      for (int flips = 1 + round % 4; flips > 0; --flips) {
        bad[random() % bad.size()] = static_cast<char>(random());
      }
      (void)Parsed(bad);
    }
  }
}

}  // namespace
}  // namespace keel::trace
