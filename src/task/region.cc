#include "task/region.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/private_file.h"
#include "keel/base/log.h"
#include "task/messages.h"
#include "task/worker.h"

namespace keel::task {
namespace {

constexpr std::uint64_t kMagic = 0x4e4f'4947'4552'4c4bULL;  // "KLREGION"
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

constexpr std::uint64_t kHeader = 4096;
static_assert(sizeof(RegionHeader) <= kHeader);

// That of replies is large enough for all that may be under way: answers are never refused. That of
// tasks is for 80 of the largest, and for as many of others as a worker takes: what is used in turn
// should fit into a cache.
struct Ring {
  std::uint64_t place;
  std::uint64_t size;
};
constexpr std::uint64_t kSlots = kHeader;
constexpr std::uint64_t kSlotsSize = kLaneSlots * sizeof(LaneSlot);
constexpr std::uint64_t kFirstRing = kSlots + kLanes * kSlotsSize;
constexpr std::array<Ring, kLanes> kRings{{{kFirstRing, 1 << 20},
                                           {kFirstRing + (1 << 20), 1 << 20},
                                           {kFirstRing + (2 << 20), 64 << 10},
                                           {kFirstRing + (2 << 20) + (64 << 10), 64 << 10}}};
static_assert(kRings.back().place + kRings.back().size <= Region::kWindow);
static_assert(Worker::kCapacity <= kLaneSlots);
static_assert(RingSize(kLargestReply) * Worker::kCapacity <= kRings[1].size);

Result<std::byte*> Map(int file, std::uint64_t size) {
  const int flags = file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* const base = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, file, 0);
  if (base == MAP_FAILED) {
    return SystemError(fmt::format("mmap of {} for a worker", ToString(Bytes(size))), errno);
  }
  return static_cast<std::byte*>(base);
}

}  // namespace

Result<std::unique_ptr<Region>> Region::CreatePrivate() {
  KEEL_ASSIGN(std::byte* const base, Map(-1, kWindow));
  return std::unique_ptr<Region>(new Region(UniqueFd(), base, kWindow));
}

Result<std::unique_ptr<Region>> Region::CreateShared(Bytes data) {
  constexpr Bytes kMost = 64_TiB;
  if (data > kMost) {
    return InvalidArgument(fmt::format("shared_memory of {} for a worker: at most {}",
                                       ToString(data), ToString(kMost)));
  }
  const std::uint64_t size = kData + AlignUp(data, 4_KiB)->count();
  KEEL_ASSIGN(UniqueFd file, CreatePrivateFile("keel-worker", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (ftruncate(file.get(), static_cast<off_t>(size)) != 0) {
    return SystemError(
        fmt::format("ftruncate of a worker's shared memory to {}", ToString(Bytes(size))), errno);
  }
  if (fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) {
    return SystemError("sealing a worker's shared memory", errno);
  }
  KEEL_ASSIGN(std::byte* const base, Map(file.get(), size));
  std::unique_ptr<Region> region(new Region(std::move(file), base, size));
  region->header().magic = kMagic;
  region->header().version = kProtocolVersion;
  region->header().size = size;
  return region;
}

Result<std::unique_ptr<Region>> Region::Open(UniqueFd file) {
  struct stat status{};
  if (fstat(file.get(), &status) != 0)
    return SystemError("fstat of a worker's shared memory", errno);
  if (!IsSealed(file, kSeals)) return InvalidArgument("a worker's shared memory is not sealed");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size < kData) {
    return InvalidArgument(
        fmt::format("a worker's shared memory has {} bytes: at least {} are due", size, kData));
  }
  KEEL_ASSIGN(std::byte* const base, Map(file.get(), size));
  std::unique_ptr<Region> region(new Region(std::move(file), base, size));
  const RegionHeader& header = region->header();
  if (header.magic != kMagic || header.size != size) {
    return InvalidArgument("a worker's shared memory does not begin as it should");
  }
  if (header.version != kProtocolVersion) {
    return FailedPrecondition(
        fmt::format("the orchestrator speaks version {} and this worker {}: install the program "
                    "keel-worker that belongs to the library",
                    header.version, kProtocolVersion));
  }
  return region;
}

Region::~Region() { munmap(base_, size_); }

Lane Region::lane(LaneName name) {
  const auto index = static_cast<std::size_t>(name);
  const Ring& ring = kRings[index];
  auto* const slots = reinterpret_cast<LaneSlot*>(base_ + kSlots + index * kSlotsSize);
  return {.state = &header().lanes[index],
          .slots = {slots, kLaneSlots},
          .ring = {base_ + ring.place, ring.size}};
}

bool Region::InWindow(std::uint64_t place, std::uint64_t size) const {
  return size_ >= kData && place >= kWindow && place <= kData && size <= kData - place;
}

bool Region::InData(std::uint64_t place, std::uint64_t size) const {
  return place >= kData && place <= size_ && size <= size_ - place;
}

void Region::Empty() {
  if (fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                static_cast<off_t>(kWindow), static_cast<off_t>(size_ - kWindow)) != 0) {
    Log(LogLevel::kWarn, SystemError("giving back a worker's shared memory", errno).message());
  }
}

}  // namespace keel::task
