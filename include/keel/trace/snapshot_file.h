// Snapshots in files: reading what other tools recorded, and writing what they open.
// docs/formats.md says which formats, and their limits.
#pragma once

#include <cstdint>
#include <string>

#include "keel/base/bytes.h"
#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/trace/snapshot.h"

namespace keel::trace {

// How much a file may unpack to, how much its values may take, and how much the snapshot, if the
// caller does not say: each so much. Real histories stay far below; a bomb is refused.
inline constexpr Bytes kReadLimit = 4_GiB;

// Reads PyTorch's memory snapshots (a pickle, or JSON of the same schema) and RMM's logs (CSV),
// each plain or packed with gzip or xz. The format is seen in the contents, not in the name. Runs
// no code that a pickle contains.
//
// Errors name the file, the format and the byte: kNotFound and kPermissionDenied from the system,
// kInvalidArgument for what is broken, cut, hostile or of no known format, kOutOfRange for what
// exceeds `limit`, kUnimplemented for xz in a build without that library.
KEEL_EXPORT Result<Snapshot> ReadSnapshotFile(const std::string& path, Bytes limit = kReadLimit);

// The same for contents that are in memory.
KEEL_EXPORT Result<Snapshot> ReadSnapshot(std::string contents, Bytes limit = kReadLimit);

// Both of PyTorch's schema; its web viewer and its tools open both.
enum class SnapshotFormat : std::uint8_t {
  kJson,
  kPickle,
};

// Replaces the file in one step: other processes see the old one or the new one, whole. On an error
// the old one is unchanged and nothing else is left. kInvalidArgument: the snapshot breaks its own
// promises (see CheckSnapshot).
KEEL_EXPORT Status WriteSnapshotFile(const std::string& path, const Snapshot& snapshot,
                                     SnapshotFormat format);

// What WriteSnapshotFile would write.
KEEL_EXPORT Result<std::string> WriteSnapshot(const Snapshot& snapshot, SnapshotFormat format);

}  // namespace keel::trace
