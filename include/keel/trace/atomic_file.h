// AtomicFile: a file that is there whole, or not at all.
//
// What is written goes to a temporary file beside the path; Commit puts it in the path's place, in
// one step. Until then whoever reads the path finds what was there before; without Commit, or when
// something fails, that stays and the temporary file is removed. A file that is replaced keeps its
// permissions; a symbolic link is followed.
//
// Not thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/base/unique_fd.h"

namespace keel::trace {

class KEEL_EXPORT AtomicFile {
 public:
  // Errors name the path: a folder that is not there or may not be written, something that is no
  // file.
  static Result<AtomicFile> Create(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept = default;
  AtomicFile& operator=(AtomicFile&& other) = delete;
  ~AtomicFile();

  Status Write(std::string_view bytes);
  // On the disk, and in its place. Nothing may be written after it.
  Status Commit();

 private:
  AtomicFile(UniqueFd fd, std::string path, std::string temporary);

  UniqueFd fd_;
  std::string path_;
  std::string temporary_;
};

}  // namespace keel::trace
