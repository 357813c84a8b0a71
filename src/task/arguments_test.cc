#include "keel/task/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace keel::task {
namespace {

using ::testing::HasSubstr;

Tensor At(std::uint64_t address, std::uint32_t bytes, bool resident = false) {
  const std::uint32_t shape[] = {bytes};
  if (resident) return Tensor::Resident(DeviceAddress(address), DataType::kUInt8, shape);
  return Tensor::Host(reinterpret_cast<const void*>(address), DataType::kUInt8, shape);
}

std::string Problem(const Arguments& arguments) {
  const Status status = arguments.Check();
  if (!status.ok()) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  }
  return std::string(status.message());
}

std::uint32_t Below(std::mt19937& random, std::uint32_t bound) {
  return static_cast<std::uint32_t>(random() % bound);
}

Arguments Random(std::mt19937& random) {
  Arguments arguments;
  const std::size_t tensors = random() % 12;
  for (std::size_t i = 0; i < tensors; ++i) {
    Tensor tensor;
    tensor.rank = static_cast<std::uint8_t>(random() % (Tensor::kMaxRank + 1));
    tensor.type = static_cast<DataType>(random() % kDataTypes);
    tensor.flags = random() % 2 != 0 ? Tensor::kResident : 0;
    for (std::size_t d = 0; d < tensor.rank; ++d) tensor.shape[d] = Below(random, 9);
    tensor.address = (i + 1) << 32;
    arguments.Add(static_cast<Tag>(1 + random() % 3), tensor);
  }
  const std::size_t scalars = random() % 12;
  for (std::size_t i = 0; i < scalars; ++i) {
    arguments.AddScalar((std::uint64_t{random()} << 32) | random());
  }
  return arguments;
}

TEST(ArgumentsTest, AreTheSameAfterAJourney) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    const Arguments arguments = Random(random);
    ASSERT_EQ(Problem(arguments), "");
    const std::vector<std::byte> block = arguments.Encode();
    EXPECT_EQ(block.size(), arguments.encoded_size());
    EXPECT_EQ(block.size() % 8, 0u);
    const Result<Arguments> again = Arguments::Decode(block);
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    ASSERT_EQ(*again, arguments);
    const ArgumentsView view(block.data());
    ASSERT_EQ(view.tensor_count(), arguments.tensors().size());
    ASSERT_EQ(view.scalar_count(), arguments.scalars().size());
    for (std::size_t i = 0; i < view.tensor_count(); ++i) {
      EXPECT_EQ(view.tensor(i), arguments.tensors()[i]);
      EXPECT_EQ(view.tag(i), arguments.tags()[i]);
    }
    for (std::size_t i = 0; i < view.scalar_count(); ++i) {
      EXPECT_EQ(view.scalar(i), arguments.scalars()[i]);
    }
  }
}

TEST(ArgumentsTest, ScalarsKeepTheirBits) {
  Arguments arguments;
  arguments.AddScalar(-1.5F).AddScalar(std::int16_t{-3}).AddScalar(true);
  const std::vector<std::byte> block = arguments.Encode();
  const ArgumentsView view(block.data());
  EXPECT_EQ(view.scalar<float>(0), -1.5F);
  EXPECT_EQ(view.scalar<std::int16_t>(1), -3);
  EXPECT_EQ(view.scalar(1), 0xfffdu);
  EXPECT_TRUE(view.scalar<bool>(2));
}

TEST(ArgumentsTest, DamageIsAnErrorOrOtherArguments) {
  std::mt19937 random(11);
  std::size_t refused = 0;
  for (int round = 0; round < 20; ++round) {
    const std::vector<std::byte> block = Random(random).Encode();
    for (std::size_t at = 0; at < block.size(); ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        std::vector<std::byte> damaged = block;
        damaged[at] ^= static_cast<std::byte>(1 << bit);
        const Result<Arguments> decoded = Arguments::Decode(damaged);
        if (decoded.ok()) {
          EXPECT_EQ(Problem(*decoded), "");
          EXPECT_EQ(decoded->Encode(), damaged);
        } else {
          ++refused;
          EXPECT_EQ(decoded.status().code(), StatusCode::kInvalidArgument);
          EXPECT_THAT(std::string(decoded.status().message()), HasSubstr("byte"));
        }
      }
      const Result<Arguments> cut = Arguments::Decode(std::span(block).first(at));
      EXPECT_EQ(cut.status().code(), StatusCode::kInvalidArgument) << "cut at " << at;
    }
    std::vector<std::byte> longer = block;
    longer.resize(block.size() + 8);
    EXPECT_FALSE(Arguments::Decode(longer).ok());
  }
  EXPECT_GT(refused, 1000u);
}

TEST(ArgumentsTest, CheckNamesTheArgument) {
  Arguments arguments;
  for (std::size_t i = 0; i <= Arguments::kMaxTensors; ++i) {
    arguments.Add(Tag::kIn, At(0x1000, 8));
    if (i < Arguments::kMaxTensors) {
      EXPECT_EQ(Problem(arguments), "");
    }
  }
  EXPECT_THAT(Problem(arguments), HasSubstr("257 tensors"));
  arguments = {};
  for (std::size_t i = 0; i <= Arguments::kMaxScalars; ++i) arguments.AddScalar(i);
  EXPECT_THAT(Problem(arguments), HasSubstr("257 scalars"));
  arguments = {};
  arguments.Add(Tag::kIn, At(0x1000, 8)).Add(static_cast<Tag>(4), At(0x2000, 8));
  EXPECT_THAT(Problem(arguments), HasSubstr("tensor 1 has the tag 4"));
  arguments = {};
  arguments.Add(Tag::kIn, At(0x1000, 8)).Add(Tag::kIn, At(0, 8));
  EXPECT_THAT(Problem(arguments), HasSubstr("tensor 1: has elements and no address"));
}

TEST(ArgumentsTest, OverlapsThatAreOnlyReadAreFine) {
  Arguments arguments;
  arguments.Add(Tag::kIn, At(0x1000, 64)).Add(Tag::kIn, At(0x1010, 64));
  EXPECT_EQ(Problem(arguments), "");
  // The same numbers on the device are other bytes; neighbours do not overlap; no bytes never do.
  arguments.Add(Tag::kOut, At(0x1000, 64, true))
      .Add(Tag::kOut, At(0x1050, 16))
      .Add(Tag::kInOut, At(0x1020, 0));
  EXPECT_EQ(Problem(arguments), "");
  arguments.Add(Tag::kOut, At(0x104f, 1));
  EXPECT_THAT(Problem(arguments), HasSubstr("tensors 1 and 5 overlap"));
}

TEST(ArgumentsTest, T7_OverlapIsSeenInEveryOrderAndAtEveryOffset) {
  std::mt19937 random(3);
  int conflicts = 0;
  for (int round = 0; round < 3000; ++round) {
    struct Piece {
      Tag tag;
      Tensor tensor;
    };
    std::vector<Piece> pieces(2 + random() % 5);
    for (Piece& piece : pieces) {
      piece.tag = random() % 4 == 0 ? Tag::kOut : (random() % 4 == 0 ? Tag::kInOut : Tag::kIn);
      piece.tensor = At(100 + Below(random, 60), Below(random, 12), Below(random, 3) == 0);
    }
    bool conflict = false;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const Tensor& a = pieces[i].tensor;
        const Tensor& b = pieces[j].tensor;
        conflict |=
            a.resident() == b.resident() && (Writes(pieces[i].tag) || Writes(pieces[j].tag)) &&
            a.address < b.address + b.size().count() && b.address < a.address + a.size().count() &&
            !a.size().empty() && !b.size().empty();
      }
    }
    conflicts += conflict ? 1 : 0;
    for (int order = 0; order < 6; ++order) {
      std::shuffle(pieces.begin(), pieces.end(), random);
      Arguments arguments;
      for (const Piece& piece : pieces) arguments.Add(piece.tag, piece.tensor);
      ASSERT_EQ(Problem(arguments).find("overlap") != std::string::npos, conflict);
    }
  }
  EXPECT_GT(conflicts, 500);
  EXPECT_LT(conflicts, 2500);
}

}  // namespace
}  // namespace keel::task
