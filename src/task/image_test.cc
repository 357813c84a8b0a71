#include "keel/task/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace keel::task {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> Code(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

ImageBuilder Builder() {
  ImageBuilder builder;
  builder.SetOrchestration(Code("orchestration!"));
  const std::uint32_t code = builder.AddPart(Code("some code of kernels"));
  const std::uint32_t set = builder.AddRegisteredPart("keel");
  builder.AddKernel(code, "first");
  builder.AddKernel(set, "keel_add");
  builder.AddKernel(code, "third_one");
  return builder;
}

Image Good() { return *Builder().Build(); }

std::string Problem(const Result<Image>& image) {
  if (image.ok()) return "";
  EXPECT_EQ(image.status().code(), StatusCode::kInvalidArgument);
  return std::string(image.status().message());
}

// With a field changed, and the checksum of what came of it.
template <class T>
std::vector<std::byte> With(std::size_t offset, T value) {
  const Image image = Good();
  std::vector<std::byte> bytes(image.bytes().begin(), image.bytes().end());
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
  const auto* data = reinterpret_cast<const Bytef*>(bytes.data());
  const auto sum =
      static_cast<std::uint32_t>(crc32_z(crc32_z(0, data, 24), data + 28, bytes.size() - 28));
  std::memcpy(bytes.data() + 24, &sum, sizeof(sum));
  return bytes;
}

TEST(ImageTest, HasWhatWasPutIn) {
  const Image built = Good();
  const Image image = *Image::Parse(built.bytes());
  EXPECT_TRUE(std::ranges::equal(image.orchestration(), Code("orchestration!")));
  EXPECT_TRUE(std::ranges::equal(
      image.bytes().subspan(image.orchestration_offset(), image.orchestration().size()),
      image.orchestration()));
  ASSERT_EQ(image.kernels().size(), 3u);
  EXPECT_EQ(image.kernels()[0].name, "first");
  EXPECT_EQ(image.kernels()[0].part, 0u);
  EXPECT_EQ(image.kernels()[1].name, "keel_add");
  EXPECT_EQ(image.kernels()[1].part, 1u);
  EXPECT_EQ(image.kernels()[2].name, "third_one");
  ASSERT_EQ(image.part_count(), 2u);
  EXPECT_EQ(image.part(0).kind, hal::ModuleSource::Kind::kImage);
  EXPECT_TRUE(std::ranges::equal(image.part(0).image, Code("some code of kernels")));
  EXPECT_EQ(image.part(1).kind, hal::ModuleSource::Kind::kRegistered);
  EXPECT_EQ(image.part(1).name, "keel");
  EXPECT_EQ(image.table_offset() + 3 * 8, image.bytes().size());
  EXPECT_EQ(image.orchestration_offset() % 16, 0u);
  EXPECT_EQ(image.table_offset() % 16, 0u);
}

TEST(ImageTest, EqualContentHasEqualBytesAndHash) {
  const Image one = Good();
  const Image two = Good();
  EXPECT_TRUE(std::ranges::equal(one.bytes(), two.bytes()));
  EXPECT_EQ(Good().hash(), Good().hash());
  ImageBuilder other = Builder();
  other.AddKernel(0, "fourth");
  EXPECT_NE(other.Build()->hash(), Good().hash());
  EXPECT_NE(Builder().SetOrchestration(Code("orchestration?")).Build()->hash(), Good().hash());
}

TEST(ImageTest, NeedsNoKernels) {
  const Result<Image> image = ImageBuilder().SetOrchestration(Code("x")).Build();
  ASSERT_TRUE(image.ok()) << image.status().ToString();
  EXPECT_EQ(image->kernels().size(), 0u);
  EXPECT_EQ(image->table_offset(), image->bytes().size());
}

TEST(ImageTest, MayHaveKernelsOnly) {
  const Image kernels = Good().WithoutOrchestration();
  EXPECT_TRUE(kernels.orchestration().empty());
  ASSERT_EQ(kernels.kernels().size(), 3u);
  EXPECT_EQ(kernels.kernels()[2].name, "third_one");
  EXPECT_EQ(kernels.kernels()[1].part, 1u);
  EXPECT_TRUE(std::ranges::equal(kernels.part(0).image, Code("some code of kernels")));
  EXPECT_EQ(kernels.part(1).name, "keel");
  const Result<Image> again = Image::Parse(kernels.bytes());
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_EQ(again->hash(), kernels.hash());
  EXPECT_EQ(kernels.WithoutOrchestration().hash(), kernels.hash());
  EXPECT_NE(kernels.hash(), Good().hash());

  EXPECT_TRUE(ImageBuilder().BuildKernels()->kernels().empty());
  EXPECT_THAT(Problem(Builder().BuildKernels()), HasSubstr("orchestration code was given"));
}

TEST(ImageTest, ABuilderSaysWhatIsMissingOrWrong) {
  EXPECT_THAT(Problem(ImageBuilder().Build()), HasSubstr("without orchestration code"));
  const auto with = [](auto change) {
    ImageBuilder builder = Builder();
    change(builder);
    return Problem(builder.Build());
  };
  EXPECT_THAT(with([](ImageBuilder& b) { b.AddKernel(2, "x"); }),
              HasSubstr("kernel 3 is of part 2; there are 2"));
  EXPECT_THAT(with([](ImageBuilder& b) { b.AddKernel(0, ""); }),
              HasSubstr("kernel 3: a name of 0"));
  EXPECT_THAT(with([](ImageBuilder& b) { b.AddKernel(0, std::string(256, 'x')); }),
              HasSubstr("a name of 256"));
  EXPECT_EQ(with([](ImageBuilder& b) { b.AddKernel(0, std::string(255, 'x')); }), "");
  EXPECT_THAT(with([](ImageBuilder& b) { b.AddKernel(0, "a\nb"); }), HasSubstr("'a\\x0ab'"));
  EXPECT_THAT(with([](ImageBuilder& b) { b.AddPart({}); }), HasSubstr("part 2"));
  EXPECT_THAT(with([](ImageBuilder& b) { b.AddRegisteredPart("a b"); }), HasSubstr("part 2"));
  EXPECT_THAT(with([](ImageBuilder& b) {
                for (std::size_t i = 0; i < Image::kMaxKernels; ++i) b.AddKernel(0, "x");
              }),
              HasSubstr("1027 kernels"));
}

TEST(ImageTest, EveryBitAndEveryLengthCounts) {
  const Image image = Good();
  const std::vector<std::byte> bytes(image.bytes().begin(), image.bytes().end());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<std::byte> damaged = bytes;
      damaged[at] ^= static_cast<std::byte>(1 << bit);
      ASSERT_THAT(Problem(Image::Parse(damaged)), HasSubstr("byte")) << at;
    }
    ASSERT_NE(Problem(Image::Parse(std::span(bytes).first(at))), "") << at;
  }
  std::vector<std::byte> longer = bytes;
  longer.push_back({});
  EXPECT_THAT(Problem(Image::Parse(longer)), HasSubstr("a size of"));
}

// With a right checksum: what is refused is refused for what it says.
TEST(ImageTest, OffsetsAndSizesAreChecked) {
  const auto problem = [](std::size_t offset, auto value) {
    return Problem(Image::Parse(With(offset, value)));
  };
  constexpr std::uint64_t kHuge = ~std::uint64_t{0};
  EXPECT_THAT(problem(8, std::uint32_t{2}), HasSubstr("at byte 8: version 2"));
  EXPECT_THAT(problem(12, std::uint32_t{97}), HasSubstr("at byte 12: a header of 97"));
  EXPECT_THAT(problem(16, kHuge), HasSubstr("at byte 16: a size of"));
  EXPECT_THAT(problem(28, ~std::uint32_t{0}), HasSubstr("at byte 28"));
  EXPECT_THAT(problem(28, std::uint32_t{1024}), HasSubstr("the list of kernels of 16384 bytes"));
  EXPECT_THAT(problem(32, ~std::uint32_t{0}), HasSubstr("at byte 32"));
  EXPECT_THAT(problem(36, std::uint32_t{1}), HasSubstr("at byte 36"));
  for (const std::size_t offset : {40, 48, 56, 72, 88}) {
    for (const std::uint64_t value :
         {std::uint64_t{0}, std::uint64_t{96 + 16}, kHuge, kHuge - 15}) {
      EXPECT_THAT(problem(offset, value), HasSubstr("at byte " + std::to_string(offset)));
    }
  }
  for (const std::size_t offset : {64, 80}) {  // the sizes of the names and of the code
    EXPECT_NE(problem(offset, kHuge), "");
    EXPECT_NE(problem(offset, std::uint64_t{0}), "");
  }
  const std::size_t kernels = 96;
  EXPECT_THAT(problem(kernels, std::uint32_t{1}), HasSubstr("the name of kernel 0"));
  EXPECT_THAT(problem(kernels + 4, ~std::uint32_t{0}), HasSubstr("the name of kernel 0"));
  EXPECT_THAT(problem(kernels + 16 + 8, std::uint32_t{2}), HasSubstr("kernel 1 is of part 2"));
  EXPECT_THAT(problem(kernels + 12, std::uint32_t{1}), HasSubstr("must be 0"));
  const std::size_t parts = kernels + 3 * 16;
  EXPECT_THAT(problem(parts, kHuge), HasSubstr("part 0 at byte"));
  EXPECT_THAT(problem(parts + 8, kHuge), HasSubstr("part 0 of"));
  EXPECT_THAT(problem(parts + 16, std::uint32_t{2}), HasSubstr("part 0 is of kind 2"));
  EXPECT_THAT(problem(Good().table_offset(), std::uint64_t{1}), HasSubstr("must be 0"));
  const std::size_t names = parts + 2 * 32;
  EXPECT_THAT(problem(names, '\n'), HasSubstr("kernel 0: the name"));
}

}  // namespace
}  // namespace keel::task
