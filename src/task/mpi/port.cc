#include "task/mpi/port.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/loaded_library.h"

namespace keel::task::mpi {
namespace {

constexpr std::string_view kName = "libkeel-mpi.so";

std::vector<std::filesystem::path> Folders() {
  const Result<std::string> file = FileOf(reinterpret_cast<const void*>(&LoadTable));
  if (!file.ok()) return {};
  const std::filesystem::path folder = std::filesystem::path(*file).parent_path();
  return {folder, folder.parent_path() / "lib"};
}

Status Error(const KeelMpiError& error) {
  return Unavailable(fmt::format(
      "MPI: {}", std::string_view(error.text, strnlen(error.text, sizeof(error.text)))));
}

}  // namespace

std::optional<int> LaunchedRank() {
  for (const char* const name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    const char* const text = std::getenv(name);
    if (text == nullptr) continue;
    int rank = -1;
    const auto [end, error] = std::from_chars(text, text + std::strlen(text), rank);
    if (error == std::errc() && *end == '\0' && rank >= 0) return rank;
  }
  return std::nullopt;
}

Result<const KeelMpiTable*> LoadTable() {
  std::vector<std::string> looked;
  for (const std::filesystem::path& folder : Folders()) {
    const std::string path = (folder / kName).string();
    struct stat status{};
    if (stat(path.c_str(), &status) != 0) {
      looked.push_back(folder.string());
      continue;
    }
    KEEL_ASSIGN(const std::shared_ptr<void> library, LoadLibraryFile(path, path));
    using Function = const KeelMpiTable* (*)();
    const auto function = reinterpret_cast<Function>(dlsym(library.get(), kKeelMpiSymbol));
    const KeelMpiTable* const table = function != nullptr ? function() : nullptr;
    if (table == nullptr || table->version != kKeelMpiVersion ||
        table->size != sizeof(KeelMpiTable)) {
      return FailedPrecondition(fmt::format(
          "{} is of another version: install the one that belongs to this library", path));
    }
    // Stays: an MPI cannot be unloaded.
    static const auto& kept = *new std::shared_ptr<void>(library);
    static_cast<void>(kept);
    return table;
  }
  return Unimplemented(
      fmt::format("workers under MPI need {}, which is in none of: {}. It is built with Keel where "
                  "there is an MPI (Debian: libopenmpi-dev and openmpi-bin)",
                  kName, fmt::join(looked, ", ")));
}

Result<std::unique_ptr<Port>> Port::Open(const KeelMpiTable& table) {
  KeelMpiError error{};
  int rank = 0;
  int ranks = 0;
  const int code = table.start(&rank, &ranks, &error);
  if (code == kKeelMpiTaken) return FailedPrecondition(std::string(Error(error).message()));
  if (code != 0) return Error(error);
  return std::unique_ptr<Port>(new Port(table, rank, ranks));
}

void Port::Abort(int code) {
  table_.abort(code);
  std::_Exit(code);
}

Result<KeelMpiHandle> Port::Send(std::span<const std::byte> bytes, int rank, int tag) {
  KeelMpiHandle request{};
  KeelMpiError error{};
  if (table_.send(bytes.data(), bytes.size(), rank, tag, &request, &error) != 0) {
    return Error(error);
  }
  return request;
}

Result<KeelMpiHandle> Port::Receive(std::span<std::byte> bytes, int rank, int tag) {
  KeelMpiHandle request{};
  KeelMpiError error{};
  if (table_.receive(bytes.data(), bytes.size(), rank, tag, &request, &error) != 0) {
    return Error(error);
  }
  return request;
}

Result<std::optional<std::size_t>> Port::Done(KeelMpiHandle& request) {
  KeelMpiError error{};
  int done = 0;
  std::size_t size = 0;
  if (table_.test(&request, &done, &size, &error) != 0) return Error(error);
  return done != 0 ? std::optional(size) : std::nullopt;
}

Result<bool> Port::Peek() {
  KeelMpiError error{};
  int found = 0;
  if (table_.peek(&found, &error) != 0) return Error(error);
  return found != 0;
}

Result<std::optional<Port::Matched>> Port::Match(int rank, int tag) {
  KeelMpiError error{};
  Matched matched;
  int found = 0;
  if (table_.match(rank, tag, &found, &matched.size, &matched.handle, &error) != 0) {
    return Error(error);
  }
  return found != 0 ? std::optional(matched) : std::nullopt;
}

Result<KeelMpiHandle> Port::Receive(std::span<std::byte> bytes, Matched& message) {
  KeelMpiHandle request{};
  KeelMpiError error{};
  if (table_.receive_matched(bytes.data(), bytes.size(), &message.handle, &request, &error) != 0) {
    return Error(error);
  }
  return request;
}

}  // namespace keel::task::mpi
