#include "trace/fuzz_targets.h"

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "keel/trace/snapshot_file.h"
#include "keel/trace/summary.h"
#include "trace/compressed_file.h"
#include "trace/json.h"
#include "trace/pickle.h"
#include "trace/rmm_log.h"
#include "trace/snapshot_writer.h"
#include "trace/torch_snapshot.h"

namespace keel::trace {
namespace {

constexpr Bytes kLimit = 64_MiB;
constexpr std::size_t kMostText = 4 << 20;

void Require(bool condition) {
  if (!condition) std::abort();
}

// Nothing if it would be long: a pickle can have one stack of a thousand frames at a thousand
// events, which JSON has to repeat.
template <class Writer>
std::optional<std::string> Text(const Snapshot& snapshot) {
  std::string text;
  Writer writer([&](std::string_view piece) {
    text += piece;
    return text.size() > kMostText ? OutOfRange("long") : OkStatus();
  });
  WriteTorchSnapshot(snapshot, writer);
  if (!writer.Finish().ok()) return std::nullopt;
  return text;
}

template <class Writer>
void RequireSameAgain(const Snapshot& snapshot) {
  const std::optional<std::string> first = Text<Writer>(snapshot);
  // Numbers that JSON has not are written as null, and null is passed over.
  if (!first || first->find("null") != std::string::npos) return;
  const Result<Snapshot> again = ReadSnapshot(*first);
  Require(again.ok());
  Require(Text<Writer>(*again) == first);
}

void Check(const Result<Snapshot>& snapshot) {
  if (!snapshot.ok()) {
    Require(!snapshot.status().message().empty());
    return;
  }
  (void)Summarize(*snapshot);
  if (!CheckSnapshot(*snapshot).ok()) return;
  RequireSameAgain<JsonWriter>(*snapshot);
  RequireSameAgain<PickleWriter>(*snapshot);
}

void CheckDocument(const Result<Document>& document) {
  if (document.ok()) Check(ReadTorchSnapshot(*document, kLimit));
}

}  // namespace

void FuzzPickle(std::string_view bytes) { CheckDocument(ParsePickle(std::string(bytes), kLimit)); }

void FuzzJson(std::string_view bytes) { CheckDocument(ParseJson(bytes, kLimit)); }

void FuzzRmmLog(std::string_view bytes) {
  (void)LooksLikeRmmLog(bytes);
  Check(ReadRmmLog(bytes, kLimit));
}

void FuzzCompressed(std::string_view bytes) {
  const Result<std::string> unpacked = Unpack(std::string(bytes), 1_MiB);
  if (unpacked.ok()) Require(unpacked->size() <= (1_MiB).count());
  Check(ReadSnapshot(std::string(bytes), kLimit));
}

}  // namespace keel::trace
