#include "drivers/sim/physical_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/private_file.h"
#include "keel/base/log.h"

namespace keel::sim {
namespace {

// Sealed against changing size, so that no importer can be made to fault by a file that shrank.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr const char* kExportName = "keel-sim-memory";

Result<UniqueFd> CreateFile(const char* name, std::uint64_t size, unsigned flags) {
  KEEL_ASSIGN(UniqueFd file, CreatePrivateFile(name, MFD_CLOEXEC | flags));
  if (ftruncate(file.get(), static_cast<off_t>(size)) != 0) {
    return SystemError(fmt::format("sizing a memory file to {}", ToString(Bytes(size))), errno);
  }
  return file;
}

}  // namespace

Result<std::shared_ptr<MemoryFile>> MemoryFile::Create(int ordinal, Bytes arena, Bytes capacity) {
  // Everything may have lost its place in the arena at once, and holes may lie between.
  const std::uint64_t size = arena.count() + 2 * capacity.count();
  const std::string name = fmt::format("keel-sim-device-{}", ordinal);
  KEEL_ASSIGN(UniqueFd file, CreateFile(name.c_str(), size, 0));
  return std::shared_ptr<MemoryFile>(new MemoryFile(ordinal, std::move(file), arena, capacity));
}

MemoryFile::MemoryFile(int ordinal, UniqueFd file, Bytes arena, Bytes capacity)
    : ordinal_(ordinal),
      file_(std::move(file)),
      arena_(arena.count()),
      capacity_(capacity),
      in_arena_(0, arena.count()),
      behind_(arena.count(), arena.count() + 2 * capacity.count()) {}

Bytes MemoryFile::used() const {
  MutexLock lock(mutex_);
  return used_;
}

bool MemoryFile::Charge(Bytes size) {
  MutexLock lock(mutex_);
  if (size > capacity_ - used_) return false;
  used_ += size;
  return true;
}

void MemoryFile::Refund(Bytes size) {
  MutexLock lock(mutex_);
  used_ -= size;
}

Result<std::uint64_t> MemoryFile::ClaimPlace(std::optional<std::uint64_t> wish, Bytes size) {
  MutexLock lock(mutex_);
  if (wish && in_arena_.AllocateAt(*wish, size.count())) return *wish;
  if (auto offset = behind_.Allocate(size.count(), 4096)) return *offset;
  return ResourceExhausted(fmt::format("device {}: no {} of its memory file are free in one piece",
                                       ordinal_, ToString(size)));
}

void MemoryFile::ReturnPlace(std::uint64_t offset, Bytes size) {
  // The next owner of this place must not see these bytes, and the host wants its pages back.
  if (fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                static_cast<off_t>(size.count())) != 0) {
    Log(LogLevel::kWarn, SystemError("returning simulated memory to the host", errno).ToString());
  }
  MutexLock lock(mutex_);
  (offset < arena_ ? in_arena_ : behind_).Free(offset, size.count());
}

Result<std::shared_ptr<PhysicalBlock>> PhysicalBlock::Create(std::shared_ptr<MemoryFile> file,
                                                             Bytes size, bool exportable) {
  if (!file->Charge(size)) {
    return ResourceExhausted(fmt::format("device {} has {} of {} left, {} were asked for",
                                         file->ordinal(), ToString(file->capacity() - file->used()),
                                         ToString(file->capacity()), ToString(size)));
  }
  UniqueFd own_file;
  if (exportable) {
    auto created = CreateFile(kExportName, size.count(), MFD_ALLOW_SEALING);
    Status status = created.status();
    if (status.ok() && fcntl(created->get(), F_ADD_SEALS, kSeals) != 0) {
      status = SystemError("sealing exportable memory", errno);
    }
    if (!status.ok()) {
      file->Refund(size);
      return status;
    }
    own_file = *std::move(created);
  }
  return std::shared_ptr<PhysicalBlock>(
      new PhysicalBlock(std::move(file), size, std::move(own_file), /*charged=*/true));
}

Result<std::shared_ptr<PhysicalBlock>> PhysicalBlock::Import(std::shared_ptr<MemoryFile> file,
                                                             int descriptor, Bytes size) {
  struct stat info = {};
  if (fstat(descriptor, &info) != 0) {
    return SystemError(fmt::format("importing descriptor {}", descriptor), errno);
  }
  const int seals = fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) {
    return InvalidArgument(
        fmt::format("descriptor {} is not memory that a simulated device exported", descriptor));
  }
  if (static_cast<std::uint64_t>(info.st_size) != size.count()) {
    return InvalidArgument(fmt::format("descriptor {} has {}, not {}", descriptor,
                                       ToString(Bytes(static_cast<std::uint64_t>(info.st_size))),
                                       ToString(size)));
  }
  UniqueFd own_file(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (!own_file.valid()) return SystemError("duplicating an imported descriptor", errno);
  return std::shared_ptr<PhysicalBlock>(
      new PhysicalBlock(std::move(file), size, std::move(own_file), /*charged=*/false));
}

PhysicalBlock::PhysicalBlock(std::shared_ptr<MemoryFile> file, Bytes size, UniqueFd own_file,
                             bool charged)
    : file_(std::move(file)), size_(size), own_file_(std::move(own_file)), charged_(charged) {
  MutexLock lock(mutex_);
  if (own_file_.valid()) offset_ = 0;
}

PhysicalBlock::~PhysicalBlock() {
  MutexLock lock(mutex_);
  if (offset_ && !own_file_.valid()) file_->ReturnPlace(*offset_, size_);
  if (charged_) file_->Refund(size_);
}

Result<UniqueFd> PhysicalBlock::Export() const {
  if (!exportable()) {
    return InvalidArgument("this memory was not created exportable (MemoryOptions::exportable)");
  }
  UniqueFd copy(fcntl(own_file_.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return SystemError("duplicating a descriptor for export", errno);
  return copy;
}

Result<FilePlace> PhysicalBlock::Place(std::optional<std::uint64_t> wish) {
  MutexLock lock(mutex_);
  if (!offset_) {
    KEEL_ASSIGN(offset_, file_->ClaimPlace(wish, size_));
  }
  return FilePlace{own_file_.valid() ? own_file_.get() : file_->descriptor(), *offset_};
}

}  // namespace keel::sim
