// For the test beside it, live_snapshot_python_test.py: uses the process's memory, writes what it
// holds as JSON and as a pickle, and prints it as lines.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "keel/drivers/sim.h"
#include "keel/hal/stream.h"
#include "keel/memory/process_memory.h"
#include "keel/trace/live_snapshot.h"
#include "keel/trace/snapshot_file.h"

namespace keel {
namespace {

// Leaves blocks of all three states, and gives and takes enough for segments to come and go.
Status Use(memory::DeviceMemory& set, hal::Stream& first, hal::Stream& second) {
  std::vector<DeviceAddress> blocks;
  const telemetry::ScopedTag tag("weights");
  for (std::uint64_t i = 1; i <= 40; ++i) {
    KEEL_ASSIGN(
        const DeviceAddress block,
        set.allocator().Allocate(Bytes(i * 70'001), i % 3 == 0 ? second.get() : first.get()));
    blocks.push_back(block);
  }
  for (std::size_t i = 0; i < blocks.size(); i += 2) {
    KEEL_TRY(set.allocator().Free(blocks[i]));
  }
  KEEL_TRY(set.allocator().EmptyCache());
  // Freed while a stream that was recorded has not come so far.
  KEEL_TRY(set.allocator().RecordUse(blocks[1], second.get()));
  KEEL_TRY(sim::FindControls(*set.device())->HoldStream(second.get()));
  KEEL_TRY(set.device()->EnqueueFill(
      second.get(), {.destination = blocks[1], .value = 1, .width = 1, .count = 100}));
  KEEL_TRY(set.allocator().Free(blocks[1]));
  return set.allocator().Allocate(Bytes(std::uint64_t{1} << 50), first.get()).ok()
             ? Internal("a petabyte was to be had")
             : OkStatus();
}

void Print(memory::DeviceMemory& set) {
  for (const memory::SegmentSnapshot& segment : set.allocator().Snapshot().segments) {
    std::printf("segment %d %llu %llu %llu\n", set.device()->info().ordinal,
                static_cast<unsigned long long>(segment.address.value()),
                static_cast<unsigned long long>(segment.size.count()),
                static_cast<unsigned long long>(segment.stream.value));
    for (const memory::BlockSnapshot& block : segment.blocks) {
      std::printf("block %llu %llu %llu %d %s\n",
                  static_cast<unsigned long long>(block.address.value()),
                  static_cast<unsigned long long>(block.size.count()),
                  static_cast<unsigned long long>(block.requested.count()),
                  static_cast<int>(block.state), std::string(TagName(block.tag)).c_str());
    }
  }
  const telemetry::MemoryStats stats = set.allocator().Stats();
  std::printf("reserved %lld\nallocated %lld\nactive %lld\nrequested %lld\n",
              static_cast<long long>(stats.reserved_bytes.all.current),
              static_cast<long long>(stats.allocated_bytes.all.current),
              static_cast<long long>(stats.active_bytes.all.current),
              static_cast<long long>(stats.requested_bytes.all.current));
}

Status Run(const char* json, const char* pickle) {
  KEEL_ASSIGN(const auto set, memory::ProcessMemory::Global().For({.driver = "sim", .ordinal = 1}));
  KEEL_ASSIGN(hal::Stream first, hal::Stream::Create(set->device()));
  KEEL_ASSIGN(hal::Stream second, hal::Stream::Create(set->device()));
  KEEL_TRY(Use(*set, first, second));
  KEEL_ASSIGN(const trace::Snapshot snapshot, trace::TakeProcessSnapshot());
  KEEL_TRY(trace::WriteSnapshotFile(json, snapshot, trace::SnapshotFormat::kJson));
  KEEL_TRY(trace::WriteSnapshotFile(pickle, snapshot, trace::SnapshotFormat::kPickle));
  Print(*set);
  KEEL_TRY(sim::FindControls(*set->device())->ReleaseStream(second.get()));
  KEEL_TRY(set->allocator().ForgetStream(first.get()));
  return set->allocator().ForgetStream(second.get());
}

}  // namespace
}  // namespace keel

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: trace_live JSON PICKLE\n", stderr);
    return 2;
  }
  keel::Status status = keel::Run(argv[1], argv[2]);
  if (status.ok()) status = keel::memory::ProcessMemory::Global().Shutdown();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
