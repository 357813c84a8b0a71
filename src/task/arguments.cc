#include "keel/task/arguments.h"

#include <fmt/format.h>

#include <algorithm>
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

// Which two overlap, one of them being written. By address, with the furthest end so far of those
// that are written and of all: an extent meets an earlier one if it begins before that end.
std::optional<std::pair<std::size_t, std::size_t>> FindConflict(std::vector<Extent> extents) {
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
  std::vector<Extent> extents;
  extents.reserve(tensors_.size());
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = tensors_[i];
    const auto tag = static_cast<unsigned>(tags_[i]);
    if (tag < 1 || tag > 3) {
      return InvalidArgument(
          fmt::format("tensor {} has the tag {}, not 1 (in), 2 (out) or 3 (in-out)", i, tag));
    }
    if (Status status = tensor.Check(); !status.ok()) {
      return std::move(status).Annotate(fmt::format("tensor {}", i));
    }
    if (tensor.size().empty()) continue;
    extents.push_back({tensor.resident(), tensor.address, tensor.address + tensor.size().count(),
                       Writes(tags_[i]), i});
  }
  if (const auto conflict = FindConflict(std::move(extents))) {
    return InvalidArgument(fmt::format(
        "tensors {} and {} overlap, and one of them is written; pass one tensor, or a copy",
        conflict->first, conflict->second));
  }
  return OkStatus();
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

Result<Arguments> Arguments::Decode(std::span<const std::byte> block) {
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
  Arguments arguments;
  arguments.tensors_.resize(header.tensors);
  arguments.scalars_.resize(header.scalars);
  arguments.tags_.resize(header.tensors);
  const std::byte* from = block.data() + sizeof(header);
  const auto get = [&from](void* to, std::size_t bytes) {
    if (bytes != 0) std::memcpy(to, from, bytes);
    from += bytes;
  };
  get(arguments.tensors_.data(), header.tensors * sizeof(Tensor));
  get(arguments.scalars_.data(), header.scalars * sizeof(std::uint64_t));
  get(arguments.tags_.data(), header.tensors);
  if (Status status = arguments.Check(); !status.ok()) {
    return std::move(status).Annotate(
        fmt::format("arguments, in the tensors at byte {} or the tags at byte {}", sizeof(header),
                    UnpaddedSize(header.tensors, header.scalars) - header.tensors));
  }
  return arguments;
}

}  // namespace keel::task
