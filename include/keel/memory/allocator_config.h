// AllocatorConfig: how the device and host allocators behave, read from KEEL_ALLOC_CONF.
//
// The text is `key:value,key:value` with PyTorch's keys and PyTorch's meaning, and Keel's own.
// docs/configuration.md lists every key with its range, default and meaning, from the same table
// that Parse uses. An unknown key or a bad value is an error that names it and what is allowed.
// Booleans are true/1/on/yes and false/0/off/no, in any case, for every key.
//
// Every field below acts on something, and the comment says on what. PyTorch's keys that have
// nothing to act on in Keel are accepted, so that a configuration can be copied, and leave a
// warning with the reason: see warnings.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "keel/base/bytes.h"
#include "keel/base/export.h"
#include "keel/base/result.h"

namespace keel::memory {

inline constexpr Bytes kUnlimited{std::numeric_limits<std::uint64_t>::max()};

struct AllocatorConfig {
  enum class Backend : std::uint8_t {
    kNative,       // Keel's allocator
    kPassthrough,  // every request is a call of the driver: no cache, no splitting; to find bugs
  };
  enum class Debug : std::uint8_t {
    kOff,
    kGuards,  // unmapped or patterned memory around each block: overflow
    kPoison,  // contents overwritten at allocation and free: use before init and after free
    kFull,    // both
  };

  // --- Device memory, PyTorch's keys ---
  Backend backend = Backend::kNative;  // backend
  // max_split_size_mb, of plain segments: free blocks of this size and more are never split. What
  // is not larger than large_segment_size always is. Expandable segments have no use for it, and an
  // allocator that has them logs that.
  Bytes max_split_size = kUnlimited;
  Bytes max_non_split_rounding{20_MiB};  // max_non_split_rounding_mb: such a block exceeds its
                                         // request by less; if only the segment size is given, it
                                         // follows that
  // garbage_collection_threshold: past this part of the limit, free memory is given back, what was
  // not used for longest first, before the driver is asked for more. 0: off.
  double garbage_collection_threshold = 0;
  // roundup_power2_divisions: into how many steps each power of two is divided when a request is
  // rounded up; [i] is for sizes from 2^i MiB, [0] for all that are smaller too, the last for all
  // that are larger. 0 and 1: no such rounding.
  static constexpr std::size_t kRoundupIntervals = 16;
  std::array<std::uint32_t, kRoundupIntervals> roundup_power2_divisions{};
  // expandable_segments: one address range per stream and pool with memory mapped as needed, where
  // the device has virtual memory.
  bool expandable_segments = true;
  // large_segment_size_mb, of plain segments: for requests of 1 to 10 MiB. As with max_split_size,
  // an allocator with expandable ones logs that it has no effect.
  Bytes large_segment_size{20_MiB};
  double per_process_memory_fraction = 1;  // of the device's capacity; the lower of it and `limit`

  // --- Device memory, Keel's keys ---
  Bytes limit = kUnlimited;     // limit: what one device's allocator may hold, in all
  Debug debug = Debug::kOff;    // debug
  std::uint64_t history = 0;    // history: events to keep in telemetry::EventLog; 0: off
  bool history_stacks = false;  // history_stacks: with the stack of each
  // front_cache: free memory that a thread may keep per stream; 0: none. Of plain segments it is
  // 256 KiB at most.
  Bytes front_cache{2_MiB};
  // handle_size: most physical memory mapped at once for requests over 1 MiB, rounded up to the
  // device's granularity. Of expandable segments, as upkeep.
  Bytes handle_size{16_MiB};
  double upkeep = 0.02;  // upkeep: part of the time that may go into mapping finer than that

  // --- Host memory, PyTorch's keys ---
  // pinned_use_cuda_host_register:  // vendor-ok: PyTorch's key
  // pin ordinary memory by registering it, rather than let the driver allocate it.
  bool pinned_use_host_register = false;
  std::int64_t pinned_num_register_threads = 1;  // threads that touch pages before registering
  bool pinned_use_background_threads = false;    // a thread looks for completed uses
  Bytes pinned_reserve_segment_size{0};  // pinned_reserve_segment_size_mb: taken at the first use

  // --- Host memory, Keel's keys ---
  Bytes host_limit = kUnlimited;  // host_limit: pinned memory held in all
  Bytes host_cache = kUnlimited;  // host_cache: past this, memory is the driver's again when freed
  // host_background_reserve: a thread keeps so much free, and touched, for small requests; 0: none
  Bytes host_background_reserve{0};
  // staging_threshold: pageable copies from here on are staged. Nothing: where that is measured to
  // be faster, in either direction (StagingOptions).
  std::optional<Bytes> staging_threshold;
  Bytes staging_chunk{4_MiB};        // staging_chunk: in pieces of at most this size
  std::int64_t staging_threads = 0;  // staging_threads: host copy threads; 0: chosen by the machine
  // staging_pin_limit: pageable memory that is copied again is pinned, up to this; 0: none is. Its
  // owner must tell before it goes: MemoryGone (registration_cache.h).
  Bytes staging_pin_limit{0};
  bool prefault = false;  // prefault: touch the pages of new pinned memory at once

  // Keys that were given and have no effect, each "key: reason".
  std::vector<std::string> warnings;

  // Errors start with `source`. Keys that are absent keep the defaults above.
  KEEL_EXPORT static Result<AllocatorConfig> Parse(std::string_view text,
                                                   std::string_view source = "KEEL_ALLOC_CONF");

  // KEEL_ALLOC_CONF, read once per process at the first call; warnings are logged then. Later
  // changes of the environment have no effect.
  KEEL_EXPORT static const Result<AllocatorConfig>& FromEnvironment();

  // What Parse turns into an equal configuration, only with the keys that differ from the
  // defaults; empty if none does.
  KEEL_EXPORT std::string ToString() const;

  // Into how many steps roundup_power2_divisions divides the power of two below `size`.
  KEEL_EXPORT std::uint32_t RoundupDivisions(Bytes size) const;
};

// Warnings do not count.
KEEL_EXPORT bool operator==(const AllocatorConfig& a, const AllocatorConfig& b);

// One line of docs/configuration.md.
struct AllocatorKey {
  std::string name;
  std::string values;         // "true or false", "20 to 17592186044415"
  std::string default_value;  // as it would be written
  std::string_view meaning;
  std::string_view no_effect;  // why not, for a key that is accepted and does nothing; else empty
};
KEEL_EXPORT std::vector<AllocatorKey> DescribeAllocatorKeys();

}  // namespace keel::memory
