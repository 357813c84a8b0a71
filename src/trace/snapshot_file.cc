#include "keel/trace/snapshot_file.h"

#include <fmt/format.h>

#include <memory>
#include <string_view>
#include <utility>

#include "base/ranges.h"
#include "keel/trace/atomic_file.h"
#include "trace/compressed_file.h"
#include "trace/json.h"
#include "trace/pickle.h"
#include "trace/rmm_log.h"
#include "trace/snapshot_writer.h"
#include "trace/torch_snapshot.h"

namespace keel::trace {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

Status InFormat(Status status, std::string_view format) {
  return std::move(status).Annotate(fmt::format("as {}", format));
}

Result<Snapshot> FromDocument(Result<Document> document, std::string_view format, Bytes limit) {
  if (!document.ok()) return InFormat(document.status(), format);
  Result<Snapshot> snapshot = ReadTorchSnapshot(*document, limit);
  if (!snapshot.ok()) return InFormat(snapshot.status(), format);
  return snapshot;
}

// From protocol 2 on a pickle starts with its number; before, with the dict that it is.
bool LooksLikePickle(std::string_view contents) {
  return contents.starts_with('\x80') || contents.starts_with("(d") || contents.starts_with('}');
}

// Takes the bytes away as soon as they are not needed.
Result<Snapshot> ReadUnpacked(std::string& bytes, Bytes limit) {
  if (LooksLikePickle(bytes)) {
    return FromDocument(ParsePickle(std::move(bytes), limit), "PyTorch's pickle", limit);
  }
  const std::size_t mark = bytes.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  const std::size_t first = bytes.find_first_not_of(" \t\r\n", mark);
  if (first != std::string::npos && bytes[first] == '{') {
    Result<Document> document = ParseJson(bytes, limit);
    bytes.clear();
    bytes.shrink_to_fit();
    return FromDocument(std::move(document), "PyTorch's JSON", limit);
  }
  if (LooksLikeRmmLog(bytes)) {
    Result<Snapshot> snapshot = ReadRmmLog(bytes, limit);
    if (!snapshot.ok()) return InFormat(snapshot.status(), "RMM's log");
    return snapshot;
  }
  return InvalidArgument(
      "byte 0: neither PyTorch's snapshot (a pickle or JSON) nor RMM's log (CSV), plain or packed "
      "with gzip or xz");
}

Status Emit(const Snapshot& snapshot, SnapshotFormat format, ValueWriter::Flush flush) {
  std::unique_ptr<ValueWriter> writer;
  if (format == SnapshotFormat::kJson) {
    writer = std::make_unique<JsonWriter>(std::move(flush));
  } else {
    writer = std::make_unique<PickleWriter>(std::move(flush));
  }
  WriteTorchSnapshot(snapshot, *writer);
  return writer->Finish();
}

}  // namespace

Result<Snapshot> ReadSnapshot(std::string contents, Bytes limit) {
  KEEL_ASSIGN(contents, Unpack(std::move(contents), limit));
  return ReadUnpacked(contents, limit);
}

Result<Snapshot> ReadSnapshotFile(const std::string& path, Bytes limit) {
  KEEL_ASSIGN(std::string contents, ReadWholeFile(path, limit));
  Result<Snapshot> snapshot = ReadSnapshot(std::move(contents), limit);
  if (!snapshot.ok()) return snapshot.status().Annotate(fmt::format("reading '{}'", path));
  return snapshot;
}

Status WriteSnapshotFile(const std::string& path, const Snapshot& snapshot, SnapshotFormat format) {
  const ScopedRange range("write a snapshot");
  KEEL_TRY(CheckSnapshot(snapshot).Annotate(fmt::format("writing '{}'", path)));
  KEEL_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  KEEL_TRY(Emit(snapshot, format, [&](std::string_view piece) { return file.Write(piece); }));
  return file.Commit();
}

Result<std::string> WriteSnapshot(const Snapshot& snapshot, SnapshotFormat format) {
  KEEL_TRY(CheckSnapshot(snapshot));
  std::string contents;
  KEEL_TRY(Emit(snapshot, format, [&](std::string_view piece) {
    contents += piece;
    return OkStatus();
  }));
  return contents;
}

}  // namespace keel::trace
