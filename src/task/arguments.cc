#include "keel/task/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

namespace keel::task {
namespace {

std::size_t UnpaddedSize(std::size_t tensors, std::size_t scalars) {
  return sizeof(ArgumentsHeader) + tensors * (sizeof(Tensor) + 1) + scalars * 8;
}
std::size_t PaddedSize(std::size_t tensors, std::size_t scalars) {
  return (UnpaddedSize(tensors, scalars) + 7) / 8 * 8;
}

struct Extent {
  bool resident = false;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool written = false;
  std::size_t argument = 0;
};

// Which two overlap, one of them being written. Sorts them by address, and keeps the furthest end
// so far of those that are written and of all: an extent meets an earlier one if it begins before
// that end.
std::optional<std::pair<std::size_t, std::size_t>> FindConflict(std::span<Extent> extents) {
  std::ranges::sort(extents, [](const Extent& a, const Extent& b) {
    return std::tie(a.resident, a.begin, a.argument) < std::tie(b.resident, b.begin, b.argument);
  });
  const Extent* furthest = nullptr;
  const Extent* furthest_written = nullptr;
  const auto meets = [](const Extent* earlier, const Extent& extent) {
    return earlier != nullptr && earlier->resident == extent.resident &&
           extent.begin < earlier->end;
  };
  const auto further = [](const Extent* known, const Extent& extent) {
    return known == nullptr || known->resident != extent.resident || known->end < extent.end;
  };
  for (const Extent& extent : extents) {
    const Extent* const earlier = extent.written ? furthest : furthest_written;
    if (meets(earlier, extent)) {
      return std::minmax(earlier->argument, extent.argument);
    }
    if (further(furthest, extent)) furthest = &extent;
    if (extent.written && further(furthest_written, extent)) furthest_written = &extent;
  }
  return std::nullopt;
}

// `tensor(i)` and `tag(i)` tell of each of so many.
template <class TensorAt, class TagAt>
Status CheckTensors(std::size_t count, const TensorAt& tensor, const TagAt& tag) {
  if (count == 0) return OkStatus();
  // Most tasks have few.
  constexpr std::size_t kFew = 8;
  std::array<Extent, kFew> few;
  std::vector<Extent> many(count > kFew ? count : 0);
  const std::span<Extent> extents = count > kFew ? std::span(many) : std::span(few);
  std::size_t used = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Tensor each = tensor(i);
    if (const auto bits = static_cast<unsigned>(tag(i)); bits < 1 || bits > 3) {
      return InvalidArgument(
          fmt::format("tensor {} has the tag {}, not 1 (in), 2 (out) or 3 (in-out)", i, bits));
    }
    if (Status status = each.Check(); !status.ok()) {
      return std::move(status).Annotate(fmt::format("tensor {}", i));
    }
    const std::uint64_t size = each.size().count();
    if (size == 0) continue;
    extents[used++] = {each.resident(), each.address, each.address + size, Writes(tag(i)), i};
  }
  if (const auto conflict = FindConflict(extents.first(used))) {
    return InvalidArgument(fmt::format(
        "tensors {} and {} overlap, and one of them is written; pass one tensor, or a copy",
        conflict->first, conflict->second));
  }
  return OkStatus();
}

Status At(std::size_t offset, std::string_view what) {
  return InvalidArgument(fmt::format("arguments, at byte {}: {}", offset, what));
}

}  // namespace

Status Arguments::Check() const {
  if (tensors_.size() > kMaxTensors) {
    return InvalidArgument(fmt::format("{} tensors were given; at most {} are possible",
                                       tensors_.size(), kMaxTensors));
  }
  if (scalars_.size() > kMaxScalars) {
    return InvalidArgument(fmt::format("{} scalars were given; at most {} are possible",
                                       scalars_.size(), kMaxScalars));
  }
  return CheckTensors(
      tensors_.size(), [this](std::size_t i) { return tensors_[i]; },
      [this](std::size_t i) { return tags_[i]; });
}

std::size_t Arguments::encoded_size() const { return PaddedSize(tensors_.size(), scalars_.size()); }

void Arguments::EncodeTo(std::span<std::byte> block) const {
  ArgumentsHeader header;
  header.tensors = static_cast<std::uint16_t>(tensors_.size());
  header.scalars = static_cast<std::uint16_t>(scalars_.size());
  header.size = static_cast<std::uint32_t>(encoded_size());
  std::byte* to = block.data();
  const auto put = [&to](const void* from, std::size_t size) {
    if (size != 0) std::memcpy(to, from, size);
    to += size;
  };
  put(&header, sizeof(header));
  put(tensors_.data(), tensors_.size() * sizeof(Tensor));
  put(scalars_.data(), scalars_.size() * sizeof(std::uint64_t));
  put(tags_.data(), tags_.size());
  std::fill(to, block.data() + header.size, std::byte{0});
}

std::vector<std::byte> Arguments::Encode() const {
  std::vector<std::byte> block(encoded_size());
  EncodeTo(block);
  return block;
}

Status Arguments::CheckBlock(std::span<const std::byte> block) {
  ArgumentsHeader header;
  if (block.size() < sizeof(header)) {
    return At(block.size(),
              fmt::format("the block ends within its header of {} bytes", sizeof(header)));
  }
  std::memcpy(&header, block.data(), sizeof(header));
  if (header.magic != ArgumentsHeader::kMagic) {
    return At(offsetof(ArgumentsHeader, magic),
              fmt::format("{:#010x} is not what arguments begin with", header.magic));
  }
  if (header.version != ArgumentsHeader::kVersion) {
    return At(
        offsetof(ArgumentsHeader, version),
        fmt::format("version {}; this is made for {}", header.version, ArgumentsHeader::kVersion));
  }
  if (header.reserved != 0) return At(offsetof(ArgumentsHeader, reserved), "must be 0");
  if (header.tensors > kMaxTensors || header.scalars > kMaxScalars) {
    return At(offsetof(ArgumentsHeader, tensors),
              fmt::format("{} tensors and {} scalars; at most {} and {} are possible",
                          header.tensors, header.scalars, kMaxTensors, kMaxScalars));
  }
  const std::size_t size = PaddedSize(header.tensors, header.scalars);
  if (header.size != size || block.size() != size) {
    return At(offsetof(ArgumentsHeader, size),
              fmt::format("a size of {} in a block of {} bytes; {} tensors and {} scalars take {}",
                          header.size, block.size(), header.tensors, header.scalars, size));
  }
  for (std::size_t at = UnpaddedSize(header.tensors, header.scalars); at < size; ++at) {
    if (block[at] != std::byte{0}) return At(at, "must be 0");
  }
  const ArgumentsView view(block.data());
  Status status = CheckTensors(
      view.tensor_count(), [&](std::size_t i) { return view.tensor(i); },
      [&](std::size_t i) { return view.tag(i); });
  if (status.ok()) return status;
  return std::move(status).Annotate(
      fmt::format("arguments, in the tensors at byte {} or the tags at byte {}", sizeof(header),
                  UnpaddedSize(header.tensors, header.scalars) - header.tensors));
}

Result<Arguments> Arguments::Decode(std::span<const std::byte> block) {
  KEEL_TRY(CheckBlock(block));
  const ArgumentsView view(block.data());
  Arguments arguments;
  for (std::size_t i = 0; i < view.tensor_count(); ++i) arguments.Add(view.tag(i), view.tensor(i));
  for (std::size_t i = 0; i < view.scalar_count(); ++i) arguments.AddScalar(view.scalar(i));
  return arguments;
}

}  // namespace keel::task
