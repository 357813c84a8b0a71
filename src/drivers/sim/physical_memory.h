// MemoryFile and PhysicalBlock: the simulated device's physical memory.
//
// One memfd per device holds its ordinary physical memory; memory that can be exported has a memfd
// of its own, because its descriptor must give away nothing else. A page that nobody wrote to
// costs nothing, so the capacity is a count and not a reservation.
//
// A block gets its place in the file when it is first mapped, and then the one that makes its file
// offset equal to its place in the address arena, if that is free. Such a mapping is already there
// (address_space.h) and costs no mapping of the host kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "drivers/sim/interval_allocator.h"
#include "keel/base/bytes.h"
#include "keel/base/mutex.h"
#include "keel/base/result.h"
#include "keel/base/unique_fd.h"

namespace keel::sim {

class MemoryFile {
 public:
  // `arena` bytes of the file belong to the address arena of the same device; blocks whose place
  // there is taken go behind it.
  static Result<std::shared_ptr<MemoryFile>> Create(int ordinal, Bytes arena, Bytes capacity);

  int ordinal() const { return ordinal_; }
  int descriptor() const { return file_.get(); }
  Bytes capacity() const { return capacity_; }
  Bytes used() const KEEL_EXCLUDES(mutex_);

  // Counts against the capacity; false: there is not that much left.
  bool Charge(Bytes size) KEEL_EXCLUDES(mutex_);
  void Refund(Bytes size) KEEL_EXCLUDES(mutex_);

  // A place in the file: at `wish` if that is free, anywhere behind the arena otherwise.
  Result<std::uint64_t> ClaimPlace(std::optional<std::uint64_t> wish, Bytes size)
      KEEL_EXCLUDES(mutex_);
  // Gives the pages back to the host, too.
  void ReturnPlace(std::uint64_t offset, Bytes size) KEEL_EXCLUDES(mutex_);

 private:
  MemoryFile(int ordinal, UniqueFd file, Bytes arena, Bytes capacity);

  const int ordinal_;
  const UniqueFd file_;
  const std::uint64_t arena_;
  const Bytes capacity_;
  mutable Mutex mutex_;
  Bytes used_ KEEL_GUARDED_BY(mutex_);
  IntervalAllocator in_arena_ KEEL_GUARDED_BY(mutex_);
  IntervalAllocator behind_ KEEL_GUARDED_BY(mutex_);
};

// Where the bytes of a block are.
struct FilePlace {
  int descriptor = -1;
  std::uint64_t offset = 0;
  friend bool operator==(const FilePlace&, const FilePlace&) = default;
};

// One physical memory. Shared by its handle, its mappings and the operations that run on it; the
// last of them returns the bytes.
class PhysicalBlock {
 public:
  static Result<std::shared_ptr<PhysicalBlock>> Create(std::shared_ptr<MemoryFile> file, Bytes size,
                                                       bool exportable);
  // Memory of another process, or of this one, by descriptor. Not charged: whoever created it was.
  static Result<std::shared_ptr<PhysicalBlock>> Import(std::shared_ptr<MemoryFile> file,
                                                       int descriptor, Bytes size);
  ~PhysicalBlock();
  PhysicalBlock(const PhysicalBlock&) = delete;
  PhysicalBlock& operator=(const PhysicalBlock&) = delete;

  Bytes size() const { return size_; }
  int ordinal() const { return file_->ordinal(); }
  bool exportable() const { return own_file_.valid(); }
  Result<UniqueFd> Export() const;
  // The first call decides; `wish` is the offset that would cost no host mapping.
  Result<FilePlace> Place(std::optional<std::uint64_t> wish) KEEL_EXCLUDES(mutex_);

 private:
  PhysicalBlock(std::shared_ptr<MemoryFile> file, Bytes size, UniqueFd own_file, bool charged);

  const std::shared_ptr<MemoryFile> file_;
  const Bytes size_;
  const UniqueFd own_file_;  // invalid: lives in file_
  const bool charged_;
  Mutex mutex_;
  std::optional<std::uint64_t> offset_ KEEL_GUARDED_BY(mutex_);
};

}  // namespace keel::sim
