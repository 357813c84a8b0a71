// BlockChurn: a set of live blocks of random size, one of which is freed and allocated anew at a
// time. What benchmarks and the check of the invariants have in common.
//
// For one thread. The allocator and the stream must outlive it; it frees what is live when it goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "keel/base/bytes.h"
#include "keel/base/status.h"
#include "keel/hal/types.h"
#include "keel/memory/device_allocator.h"

namespace keel::cli {

// Sizes of all magnitudes alike, from `least` to `most`; the same for the same seed. A table, so
// that choosing costs next to nothing beside what is measured.
class SizeTable {
 public:
  SizeTable(Bytes least, Bytes most, std::uint64_t seed);
  Bytes operator[](std::uint64_t random) const { return sizes_[random % sizes_.size()]; }

 private:
  std::vector<Bytes> sizes_;
};

// A generator that is cheaper than the standard's.
class FastRandom {
 public:
  explicit FastRandom(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}
  std::uint64_t operator()() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }

 private:
  std::uint64_t state_;
};

class BlockChurn {
 public:
  BlockChurn(memory::DeviceAllocator& allocator, hal::StreamHandle stream, const SizeTable& sizes,
             std::uint64_t seed)
      : allocator_(allocator), stream_(stream), sizes_(sizes), random_(seed) {}
  ~BlockChurn();
  BlockChurn(const BlockChurn&) = delete;
  BlockChurn& operator=(const BlockChurn&) = delete;

  // Allocates until so many are live.
  Status Fill(std::size_t live);
  // Frees one at random and allocates one, `count` times.
  Status Turn(std::uint64_t count);
  // The same; each block is used by `other` before it is freed.
  Status TurnUsed(std::uint64_t count, hal::StreamHandle other);
  // Frees and allocates all, one after another, in order.
  Status Sweep();
  // Two may exchange theirs, so that each frees what the other allocated.
  std::vector<DeviceAddress>& blocks() { return live_; }
  Status FreeAll();

 private:
  Status Replace(std::size_t index);

  memory::DeviceAllocator& allocator_;
  const hal::StreamHandle stream_;
  const SizeTable& sizes_;
  FastRandom random_;
  std::vector<DeviceAddress> live_;  // 0: nothing, because its allocation failed
};

// Runs body(0) to body(threads - 1), each in a thread of its own. The first error in that order.
Status InThreads(int threads, const std::function<Status(int thread)>& body);

}  // namespace keel::cli
