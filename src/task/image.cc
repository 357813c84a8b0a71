#include "keel/task/image.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/quote.h"

namespace keel::task {
namespace {

// docs/tasks.md describes these three.
struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t header_size;
  std::uint64_t total_size;
  std::uint32_t checksum;
  std::uint32_t kernel_count;
  std::uint32_t part_count;
  std::uint32_t reserved;
  std::uint64_t kernels_offset;
  std::uint64_t parts_offset;
  std::uint64_t names_offset;
  std::uint64_t names_size;
  std::uint64_t orchestration_offset;
  std::uint64_t orchestration_size;
  std::uint64_t table_offset;
};
static_assert(sizeof(Header) == 96);

struct KernelRecord {
  std::uint32_t name_offset;  // within the names
  std::uint32_t name_size;
  std::uint32_t part;
  std::uint32_t reserved;
};
static_assert(sizeof(KernelRecord) == 16);

enum class PartKind : std::uint32_t { kCode = 0, kRegistered = 1 };

struct PartRecord {
  std::uint64_t offset;
  std::uint64_t size;
  PartKind kind;
  std::uint32_t reserved;
  std::uint64_t reserved_too;
};
static_assert(sizeof(PartRecord) == 32);

constexpr char kMagic[8] = {'K', 'E', 'E', 'L', 'I', 'M', 'G', '\1'};
constexpr std::uint32_t kVersion = 1;
constexpr std::uint64_t kAlignment = 16;
constexpr std::size_t kTableEntry = 8;
constexpr std::size_t kMaxParts = Image::kMaxKernels;

// Sizes here are at most a few times kMaxSize: no sum of them overflows.
constexpr std::uint64_t Aligned(std::uint64_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

std::uint32_t Checksum(std::span<const std::byte> bytes) {
  constexpr std::size_t kField = offsetof(Header, checksum);
  constexpr std::size_t kAfter = kField + sizeof(Header::checksum);
  const auto* data = reinterpret_cast<const Bytef*>(bytes.data());
  uLong sum = crc32_z(0, data, kField);
  sum = crc32_z(sum, data + kAfter, bytes.size() - kAfter);
  return static_cast<std::uint32_t>(sum);
}

std::uint64_t Hash(std::span<const std::byte> bytes) {
  constexpr std::uint64_t kMultiplier = 0x9e37'79b9'7f4a'7c15;
  std::uint64_t hash = bytes.size();
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min<std::size_t>(8, bytes.size() - at));
    hash = (hash ^ word) * kMultiplier;
    hash ^= hash >> 29;
  }
  return hash;
}

// A name of a kernel or of a set: it goes into messages and to C interfaces.
Status CheckName(std::string_view name) {
  if (name.empty() || name.size() > Image::kMaxName) {
    return InvalidArgument(
        fmt::format("a name of {} characters, not 1 to {}", name.size(), Image::kMaxName));
  }
  if (std::ranges::any_of(name, [](char c) { return c <= ' ' || c > '~'; })) {
    return InvalidArgument(fmt::format(
        "the name {} has a space, or a character that is not printable ASCII", Quote(name)));
  }
  return OkStatus();
}

Status At(std::uint64_t offset, std::string_view what) {
  return InvalidArgument(fmt::format("image, at byte {}: {}", offset, what));
}

// Goes through the bytes from the front: each piece must begin where the one before it ended, at
// the next multiple of 16, and what lies between must be 0. So nothing can overlap, and equal
// content has equal bytes.
class Layout {
 public:
  explicit Layout(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // `field`: where the offset is written, for errors.
  Status Take(std::uint64_t field, std::string_view what, std::uint64_t offset,
              std::uint64_t size) {
    const std::uint64_t begin = Aligned(end_);
    if (offset != begin) {
      return At(field, fmt::format("{} at byte {}, not at {}", what, offset, begin));
    }
    if (size > bytes_.size() || begin > bytes_.size() - size) {
      return At(field, fmt::format("{} of {} bytes at byte {}; the image has {}", what, size, begin,
                                   bytes_.size()));
    }
    for (std::uint64_t at = end_; at < begin; ++at) {
      if (bytes_[at] != std::byte{0}) return At(at, fmt::format("must be 0, before {}", what));
    }
    end_ = begin + size;
    return OkStatus();
  }
  std::uint64_t end() const { return end_; }

 private:
  const std::span<const std::byte> bytes_;
  std::uint64_t end_ = sizeof(Header);
};

template <class T>
T Read(std::span<const std::byte> bytes, std::uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

Status CheckHeader(std::span<const std::byte> bytes) {
  if (bytes.size() > Image::kMaxSize) {
    return InvalidArgument(fmt::format("an image of {} bytes; at most {} are possible",
                                       bytes.size(), Image::kMaxSize));
  }
  if (bytes.size() < sizeof(Header)) {
    return At(bytes.size(), fmt::format("it ends within its header of {} bytes", sizeof(Header)));
  }
  const auto header = Read<Header>(bytes, 0);
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) {
    return At(0, "this is not an image: it does not begin with KEELIMG");
  }
  if (header.version != kVersion) {
    return At(offsetof(Header, version),
              fmt::format("version {}; this is made for {}", header.version, kVersion));
  }
  if (header.header_size != sizeof(Header)) {
    return At(offsetof(Header, header_size),
              fmt::format("a header of {} bytes, not {}", header.header_size, sizeof(Header)));
  }
  if (header.total_size != bytes.size()) {
    return At(offsetof(Header, total_size),
              fmt::format("a size of {} bytes, but there are {}", header.total_size, bytes.size()));
  }
  if (const std::uint32_t sum = Checksum(bytes); header.checksum != sum) {
    return At(
        offsetof(Header, checksum),
        fmt::format("the checksum is {:#010x}, but the bytes have {:#010x}: they were damaged",
                    header.checksum, sum));
  }
  if (header.kernel_count > Image::kMaxKernels) {
    return At(offsetof(Header, kernel_count), fmt::format("{} kernels; at most {} are possible",
                                                          header.kernel_count, Image::kMaxKernels));
  }
  if (header.part_count > kMaxParts) {
    return At(offsetof(Header, part_count),
              fmt::format("{} parts; at most {} are possible", header.part_count, kMaxParts));
  }
  if (header.reserved != 0) return At(offsetof(Header, reserved), "must be 0");
  return OkStatus();
}

}  // namespace

struct Image::Parsed {
  struct Part {
    PartKind kind;
    std::span<const std::byte> content;
  };

  // Fills the rest from `bytes`.
  Status Read();
  Status ReadKernels(const Header& header);
  Status ReadParts(const Header& header, Layout& layout);

  std::vector<std::byte> bytes;
  std::span<const std::byte> orchestration;
  std::vector<Kernel> kernels;
  std::vector<Part> parts;
  std::size_t table_offset = 0;
  std::uint64_t hash = 0;
};

Status Image::Parsed::Read() {
  KEEL_TRY(CheckHeader(bytes));
  const auto header = task::Read<Header>(bytes, 0);
  Layout layout(bytes);
  KEEL_TRY(layout.Take(offsetof(Header, kernels_offset), "the list of kernels",
                       header.kernels_offset, header.kernel_count * sizeof(KernelRecord)));
  KEEL_TRY(layout.Take(offsetof(Header, parts_offset), "the list of parts", header.parts_offset,
                       header.part_count * sizeof(PartRecord)));
  KEEL_TRY(layout.Take(offsetof(Header, names_offset), "the names", header.names_offset,
                       header.names_size));
  KEEL_TRY(layout.Take(offsetof(Header, orchestration_offset), "the orchestration code",
                       header.orchestration_offset, header.orchestration_size));
  orchestration = std::span<const std::byte>(bytes).subspan(header.orchestration_offset,
                                                            header.orchestration_size);
  KEEL_TRY(ReadKernels(header));
  KEEL_TRY(ReadParts(header, layout));
  KEEL_TRY(layout.Take(offsetof(Header, table_offset), "the table of kernel addresses",
                       header.table_offset, header.kernel_count * kTableEntry));
  for (std::uint64_t at = header.table_offset; at < layout.end(); ++at) {
    if (bytes[at] != std::byte{0}) return At(at, "must be 0, in the table of kernel addresses");
  }
  if (layout.end() != bytes.size()) {
    return At(layout.end(), fmt::format("{} bytes too many", bytes.size() - layout.end()));
  }
  table_offset = header.table_offset;
  hash = Hash(bytes);
  return OkStatus();
}

Status Image::Parsed::ReadKernels(const Header& header) {
  std::uint64_t names_end = 0;
  kernels.reserve(header.kernel_count);
  for (std::uint32_t i = 0; i < header.kernel_count; ++i) {
    const std::uint64_t at = header.kernels_offset + i * sizeof(KernelRecord);
    const auto record = task::Read<KernelRecord>(bytes, at);
    if (record.name_offset != names_end || record.name_size > header.names_size - names_end) {
      return At(at,
                fmt::format("the name of kernel {}, {} bytes at {} of {}, is not where it must "
                            "be, at {}",
                            i, record.name_size, record.name_offset, header.names_size, names_end));
    }
    const std::string_view name(
        reinterpret_cast<const char*>(bytes.data() + header.names_offset + names_end),
        record.name_size);
    KEEL_TRY(CheckName(name).Annotate(fmt::format("image, at byte {}: kernel {}", at, i)));
    if (record.part >= header.part_count) {
      return At(at, fmt::format("kernel {} is of part {}; there are {}", i, record.part,
                                header.part_count));
    }
    if (record.reserved != 0) return At(at, fmt::format("kernel {}: must be 0", i));
    kernels.push_back({name, record.part});
    names_end += record.name_size;
  }
  if (names_end != header.names_size) {
    return At(offsetof(Header, names_size),
              fmt::format("the names take {} bytes, not {}", names_end, header.names_size));
  }
  return OkStatus();
}

Status Image::Parsed::ReadParts(const Header& header, Layout& layout) {
  parts.reserve(header.part_count);
  for (std::uint32_t i = 0; i < header.part_count; ++i) {
    const std::uint64_t at = header.parts_offset + i * sizeof(PartRecord);
    const auto record = task::Read<PartRecord>(bytes, at);
    KEEL_TRY(layout.Take(at, fmt::format("part {}", i), record.offset, record.size));
    const auto content = std::span<const std::byte>(bytes).subspan(record.offset, record.size);
    if (record.size == 0) return At(at, fmt::format("part {} is empty", i));
    if (record.kind == PartKind::kRegistered) {
      KEEL_TRY(CheckName({reinterpret_cast<const char*>(content.data()), content.size()})
                   .Annotate(fmt::format("image, at byte {}: part {}", at, i)));
    } else if (record.kind != PartKind::kCode) {
      return At(at, fmt::format("part {} is of kind {}, which is none", i,
                                static_cast<std::uint32_t>(record.kind)));
    }
    if (record.reserved != 0 || record.reserved_too != 0) {
      return At(at, fmt::format("part {}: must be 0", i));
    }
    parts.push_back({record.kind, content});
  }
  return OkStatus();
}

Image::Image(std::shared_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}

Result<Image> Image::Parse(std::span<const std::byte> bytes) {
  if (bytes.size() > kMaxSize) return CheckHeader(bytes);
  auto parsed = std::make_shared<Parsed>();
  parsed->bytes.assign(bytes.begin(), bytes.end());
  KEEL_TRY(parsed->Read());
  return Image(std::move(parsed));
}

std::span<const std::byte> Image::bytes() const { return parsed_->bytes; }
std::span<const std::byte> Image::orchestration() const { return parsed_->orchestration; }
std::size_t Image::orchestration_offset() const {
  return static_cast<std::size_t>(parsed_->orchestration.data() - parsed_->bytes.data());
}
std::span<const Image::Kernel> Image::kernels() const { return parsed_->kernels; }
std::size_t Image::part_count() const { return parsed_->parts.size(); }
std::size_t Image::table_offset() const { return parsed_->table_offset; }
std::uint64_t Image::hash() const { return parsed_->hash; }

hal::ModuleSource Image::part(std::size_t i) const {
  const Parsed::Part& part = parsed_->parts[i];
  if (part.kind == PartKind::kCode) return hal::ModuleSource::Image(part.content);
  return hal::ModuleSource::Registered(
      std::string(reinterpret_cast<const char*>(part.content.data()), part.content.size()));
}

// --- Building -------------------------------------------------------------------------------

ImageBuilder& ImageBuilder::SetOrchestration(std::vector<std::byte> code) {
  orchestration_ = std::move(code);
  return *this;
}

std::uint32_t ImageBuilder::AddPart(std::vector<std::byte> code) {
  parts_.push_back({std::move(code), {}});
  return static_cast<std::uint32_t>(parts_.size() - 1);
}

std::uint32_t ImageBuilder::AddRegisteredPart(std::string set) {
  parts_.push_back({{}, std::move(set)});
  return static_cast<std::uint32_t>(parts_.size() - 1);
}

std::uint32_t ImageBuilder::AddKernel(std::uint32_t part, std::string name) {
  kernels_.push_back({part, std::move(name)});
  return static_cast<std::uint32_t>(kernels_.size() - 1);
}

Image Image::WithoutOrchestration() const {
  if (orchestration().empty()) return *this;
  ImageBuilder builder;
  for (std::size_t i = 0; i < part_count(); ++i) {
    const hal::ModuleSource source = part(i);
    if (source.kind == hal::ModuleSource::Kind::kImage) {
      builder.AddPart({source.image.begin(), source.image.end()});
    } else {
      builder.AddRegisteredPart(source.name);
    }
  }
  for (const Kernel& kernel : kernels()) builder.AddKernel(kernel.part, std::string(kernel.name));
  return *builder.BuildKernels();  // they are an image's already
}

Result<Image> ImageBuilder::Build() const {
  if (orchestration_.empty()) {
    return InvalidArgument(
        "an image without orchestration code; BuildKernels makes one for a function");
  }
  return BuildAny();
}

Result<Image> ImageBuilder::BuildKernels() const {
  if (!orchestration_.empty()) {
    return InvalidArgument("orchestration code was given, which an image of kernels has not");
  }
  return BuildAny();
}

Result<Image> ImageBuilder::BuildAny() const {
  if (kernels_.size() > Image::kMaxKernels || parts_.size() > kMaxParts) {
    return InvalidArgument(fmt::format("an image of {} kernels in {} parts; at most {} and {}",
                                       kernels_.size(), parts_.size(), Image::kMaxKernels,
                                       kMaxParts));
  }
  std::uint64_t content = orchestration_.size();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].code.empty()) {
      KEEL_TRY(CheckName(parts_[i].set)
                   .Annotate(fmt::format("part {}, of no code or of a registered set", i)));
    }
    content += parts_[i].code.size();
  }
  std::string names;
  std::vector<KernelRecord> kernels;
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    KEEL_TRY(CheckName(kernels_[i].name).Annotate(fmt::format("kernel {}", i)));
    if (kernels_[i].part >= parts_.size()) {
      return InvalidArgument(
          fmt::format("kernel {} is of part {}; there are {}", i, kernels_[i].part, parts_.size()));
    }
    kernels.push_back({static_cast<std::uint32_t>(names.size()),
                       static_cast<std::uint32_t>(kernels_[i].name.size()), kernels_[i].part, 0});
    names += kernels_[i].name;
  }
  // Before anything is copied; what the rest takes is found by Read.
  if (content > Image::kMaxSize) {
    return InvalidArgument(
        fmt::format("code of {} bytes; an image has at most {}", content, Image::kMaxSize));
  }

  auto parsed = std::make_shared<Image::Parsed>();
  std::vector<std::byte>& bytes = parsed->bytes;
  // Grows by a piece, at the next multiple of 16, and says where.
  const auto append = [&bytes](const void* data, std::size_t size) {
    const std::uint64_t offset = Aligned(bytes.size());
    bytes.resize(offset + size);
    if (data != nullptr && size != 0) std::memcpy(bytes.data() + offset, data, size);
    return offset;
  };
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kVersion;
  header.header_size = sizeof(Header);
  header.kernel_count = static_cast<std::uint32_t>(kernels.size());
  header.part_count = static_cast<std::uint32_t>(parts_.size());
  append(nullptr, sizeof(Header));
  header.kernels_offset = append(kernels.data(), kernels.size() * sizeof(KernelRecord));
  header.parts_offset = append(nullptr, parts_.size() * sizeof(PartRecord));
  header.names_offset = append(names.data(), names.size());
  header.names_size = names.size();
  header.orchestration_offset = append(orchestration_.data(), orchestration_.size());
  header.orchestration_size = orchestration_.size();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    const bool code = !part.code.empty();
    const std::size_t size = code ? part.code.size() : part.set.size();
    const void* const data = code ? static_cast<const void*>(part.code.data()) : part.set.data();
    const PartRecord record{append(data, size), size,
                            code ? PartKind::kCode : PartKind::kRegistered, 0, 0};
    std::memcpy(bytes.data() + header.parts_offset + i * sizeof(record), &record, sizeof(record));
  }
  header.table_offset = append(nullptr, kernels.size() * kTableEntry);
  header.total_size = bytes.size();
  std::memcpy(bytes.data(), &header, sizeof(header));
  header.checksum = Checksum(bytes);
  std::memcpy(bytes.data(), &header, sizeof(header));
  KEEL_TRY(parsed->Read());
  return Image(std::move(parsed));
}

}  // namespace keel::task
