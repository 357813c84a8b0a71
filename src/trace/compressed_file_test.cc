#include "trace/compressed_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "trace/files_test.h"

namespace keel::trace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string ErrorOf(const Result<std::string>& bytes) {
  return bytes.ok() ? "OK" : bytes.status().ToString();
}

class CompressedFileTest : public FileTest {};

TEST_F(CompressedFileTest, FilesAreReadWhole) {
  EXPECT_EQ(*ReadWholeFile(Write(""), 0_B), "");
  EXPECT_EQ(*ReadWholeFile(Write("plain"), 5_B), "plain");
  const std::string large(3'000'000, 'x');
  EXPECT_EQ(*ReadWholeFile(Write(large), Bytes(large.size())), large);
}

TEST_F(CompressedFileTest, FilesThatCannotBeReadAreNamed) {
  const auto missing = ReadWholeFile(PathOf("absent"), 1_GiB);
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(ErrorOf(missing), HasSubstr("absent"));
  const auto folder = ReadWholeFile(folder_.string(), 1_GiB);
  EXPECT_EQ(folder.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ErrorOf(folder), AllOf(HasSubstr(folder_.string()), HasSubstr("is a directory")));
  EXPECT_THAT(ErrorOf(ReadWholeFile(Write("12345"), 4_B)),
              AllOf(HasSubstr("OUT_OF_RANGE"), HasSubstr("is larger than 4 B")));
  EXPECT_THAT(ErrorOf(ReadWholeFile("/dev/zero", 5_MiB)), HasSubstr("is larger than 5 MiB"));
}

TEST(UnpackTest, CompressionIsSeenInTheBytes) {
  EXPECT_EQ(*Unpack("plain", 5_B), "plain");
  EXPECT_EQ(*Unpack("", 0_B), "");
  const std::string text(3'000'000, 'x');
  EXPECT_EQ(*Unpack(Gzip(text), Bytes(text.size())), text);
  EXPECT_EQ(*Unpack(Gzip(""), 0_B), "");
}

TEST(UnpackTest, GzipMayHaveSeveralPiecesAndPadding) {
  EXPECT_EQ(*Unpack(Gzip("one ") + Gzip("") + Gzip("two"), 7_B), "one two");
  EXPECT_EQ(*Unpack(Gzip("one") + std::string(512, '\0'), 3_B), "one");
  EXPECT_THAT(ErrorOf(Unpack(Gzip("one") + "rest", 1_KiB)),
              HasSubstr("broken or cut near byte " + std::to_string(Gzip("one").size())));
}

TEST(UnpackTest, ABombIsRefused) {
  const std::string packed = Gzip(std::string(3'000'000, 'x'));
  for (const Bytes limit : {Bytes(0), Bytes(1000), Bytes(2'999'999)}) {
    EXPECT_THAT(ErrorOf(Unpack(packed, limit)),
                AllOf(HasSubstr("OUT_OF_RANGE"), HasSubstr("unpacks to more than")));
  }
  EXPECT_THAT(ErrorOf(Unpack("12345", 4_B)), HasSubstr("OUT_OF_RANGE"));
}

TEST(UnpackTest, DamageIsNamedWithItsPlace) {
  const std::string packed = Gzip(std::string(3'000'000, 'x'));
  for (const std::size_t length :
       {std::size_t{2}, std::size_t{10}, packed.size() / 2, packed.size() - 1}) {
    EXPECT_THAT(ErrorOf(Unpack(packed.substr(0, length), 1_GiB)),
                HasSubstr("INVALID_ARGUMENT: the gzip data is broken or cut near byte"));
  }
  std::string wrong_sum = packed;
  wrong_sum[wrong_sum.size() - 6] ^= 1;
  EXPECT_THAT(ErrorOf(Unpack(wrong_sum, 1_GiB)), HasSubstr("gzip data is broken"));
}

class XzTest : public FileTest {};

TEST_F(XzTest, IsReadOrRefusedByName) {
  const std::string packed = Contents(kSample);
  ASSERT_GT(packed.size(), 1000u);
  const auto bytes = Unpack(packed, 1_GiB);
  if (!kReadsXz) {
    EXPECT_EQ(bytes.status().code(), StatusCode::kUnimplemented);
    EXPECT_THAT(ErrorOf(bytes), HasSubstr("built without liblzma"));
    return;
  }
  ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
  EXPECT_EQ(bytes->size(), 3363878u);
  EXPECT_TRUE(Unpack(packed, Bytes(3363878)).ok());
  EXPECT_THAT(ErrorOf(Unpack(packed, Bytes(3363877))), HasSubstr("OUT_OF_RANGE"));
  EXPECT_THAT(ErrorOf(Unpack(packed.substr(0, packed.size() / 2), 1_GiB)),
              HasSubstr("xz data is broken or cut near byte"));
  EXPECT_EQ(Unpack(packed + packed, 1_GiB)->size(), 2 * 3363878u);
}

}  // namespace
}  // namespace keel::trace
