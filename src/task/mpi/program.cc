// The note between what runs a program as rank 0 and the bridge in that program: a file without a
// name, empty until MPI is started.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/private_file.h"
#include "keel/task/mpi_worker.h"
#include "task/mpi/bridge.h"
#include "task/mpi/port.h"

namespace keel::task {
namespace {

constexpr const char* kVariable = "KEEL_MPI_NOTE";
constexpr const char* kFile = "keel-mpi-note";

// The program may have closed the descriptor, and opened something else.
bool IsNote(int descriptor) {
  std::array<char, 64> target{};
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  return readlink(path.c_str(), target.data(), target.size() - 1) > 0 &&
         std::string_view(target.data()).starts_with(std::string("/memfd:") + kFile);
}

}  // namespace

Result<MpiProgram> MpiProgram::Create() {
  KEEL_ASSIGN(UniqueFd note, CreatePrivateFile(kFile, 0));
  if (setenv(kVariable, std::to_string(note.get()).c_str(), 1) != 0) {
    return SystemError("the environment of the program of rank 0", errno);
  }
  return MpiProgram(std::move(note));
}

bool MpiProgram::started() const {
  struct stat status{};
  return fstat(note_.get(), &status) == 0 && status.st_size > 0;
}

Status MpiProgram::Release() {
  constexpr auto kTime = std::chrono::seconds(60);
  return mpi::Bridge::Get(Deadline::After(kTime)).status();
}

void mpi::NoteStart() {
  const char* const text = std::getenv(kVariable);
  if (text == nullptr) return;
  int descriptor = -1;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), descriptor);
  if (error != std::errc() || *end != '\0' || !IsNote(descriptor)) return;
  static_cast<void>(!write(descriptor, "1", 1));
}

}  // namespace keel::task
