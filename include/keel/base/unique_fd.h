// UniqueFd: a file descriptor that is closed once, by whoever owns it last.
#pragma once

#include <utility>

#include "keel/base/export.h"

namespace keel {

class KEEL_EXPORT UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) Reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { Reset(-1); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  // The caller owns it from now on.
  int Release() { return std::exchange(fd_, -1); }
  // Closes what was owned (an error of close is logged) and owns `fd`.
  void Reset(int fd);

 private:
  int fd_ = -1;
};

}  // namespace keel
