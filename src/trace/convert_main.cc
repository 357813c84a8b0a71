// For the test beside it, snapshot_python_test.py: reads any file and writes it as JSON or pickle.
#include <cstdio>
#include <string>
#include <string_view>

#include "keel/trace/snapshot_file.h"

int main(int argc, char** argv) {
  using namespace keel::trace;
  if (argc != 4) {
    std::fputs("usage: trace_convert json|pickle FROM TO\n", stderr);
    return 2;
  }
  const auto snapshot = ReadSnapshotFile(argv[2]);
  if (!snapshot.ok()) {
    std::fprintf(stderr, "%s\n", snapshot.status().ToString().c_str());
    return 1;
  }
  const bool json = std::string_view(argv[1]) == "json";
  const keel::Status status =
      WriteSnapshotFile(argv[3], *snapshot, json ? SnapshotFormat::kJson : SnapshotFormat::kPickle);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
