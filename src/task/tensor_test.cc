#include "keel/task/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace keel::task {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();

Tensor Good() {
  static constexpr std::uint32_t kShape[] = {3, 5};
  return Tensor::Resident(DeviceAddress(0x1000), DataType::kInt16, kShape);
}

std::string Problem(const Tensor& tensor) {
  const Status status = tensor.Check();
  if (!status.ok()) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  }
  return std::string(status.message());
}

TEST(TensorTest, SizeIsThatOfItsElements) {
  EXPECT_EQ(Good().elements(), 15u);
  EXPECT_EQ(Good().size(), 30_B);
  EXPECT_TRUE(Good().resident());
  EXPECT_TRUE(Good().Check().ok());
  const double scalar = 1;
  const Tensor one = Tensor::Host(&scalar, DataType::kFloat64, {});
  EXPECT_EQ(one.size(), 8_B);
  EXPECT_FALSE(one.resident());
  EXPECT_TRUE(one.Check().ok());
}

TEST(TensorTest, TypesHaveNamesAndSizes) {
  std::vector<std::string> all;
  for (std::uint8_t i = 0; i < kDataTypes; ++i) {
    const auto type = static_cast<DataType>(i);
    EXPECT_GT(SizeOf(type), 0u);
    all.emplace_back(DataTypeName(type));
  }
  EXPECT_THAT(all, ::testing::ElementsAre("uint8", "int8", "uint16", "int16", "uint32", "int32",
                                          "uint64", "int64", "float16", "bfloat16", "float32",
                                          "float64", "bool", "complex64", "complex128"));
  EXPECT_EQ(SizeOf(DataType::kComplex128), 16u);
  EXPECT_EQ(SizeOf(DataType::kBFloat16), 2u);
  EXPECT_EQ(DataTypeName(static_cast<DataType>(42)), "unknown");
}

TEST(TensorTest, CheckSaysWhatIsWrong) {
  Tensor bad = Good();
  bad.rank = 7;
  EXPECT_THAT(Problem(bad), HasSubstr("7 dimensions"));
  bad = Good();
  bad.type = static_cast<DataType>(15);
  EXPECT_THAT(Problem(bad), HasSubstr("type 15"));
  bad = Good();
  bad.flags = 2;
  EXPECT_THAT(Problem(bad), HasSubstr("flags 0x2"));
  bad = Good();
  bad.reserved[4] = 1;
  EXPECT_THAT(Problem(bad), HasSubstr("reserved"));
  bad = Good();
  bad.shape[5] = 4;
  EXPECT_THAT(Problem(bad), HasSubstr("dimension 5"));
  bad = Good();
  bad.address = 0;
  EXPECT_THAT(Problem(bad), HasSubstr("no address"));
  bad = Good();
  bad.address = std::numeric_limits<std::uint64_t>::max() - 20;
  EXPECT_THAT(Problem(bad), HasSubstr("beyond the end"));
}

TEST(TensorTest, SizesThatOverflowAreRefused) {
  Tensor huge = Good();
  huge.address = 1;
  huge.type = DataType::kUInt8;
  huge.rank = 2;
  huge.shape = {1u << 31, kMost};
  EXPECT_EQ(Problem(huge), "");
  huge.shape = {kMost, kMost};
  EXPECT_THAT(Problem(huge), HasSubstr("2^63"));
  huge.rank = 6;
  huge.shape = {1u << 16, 1u << 16, 1u << 16, 1u << 16, 1, 1};  // 2^64: wraps to 0
  EXPECT_THAT(Problem(huge), HasSubstr("2^63"));
  huge.shape[5] = 0;  // no elements, whatever the others are
  EXPECT_EQ(Problem(huge), "");
  EXPECT_EQ(huge.size(), 0_B);
  huge.address = 0;
  EXPECT_EQ(Problem(huge), "");
}

}  // namespace
}  // namespace keel::task
