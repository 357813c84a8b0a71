// The ranges that this thread makes, for tests of who makes which.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/ranges.h"

namespace keel {

class RecordedRanges {
 public:
  RecordedRanges() {
    names_.clear();
    depth_ = 0;
    SetRangeSink(&kSink);
  }
  ~RecordedRanges() {
    SetRangeSink(nullptr);
    on_push_ = nullptr;
  }
  RecordedRanges(const RecordedRanges&) = delete;
  RecordedRanges& operator=(const RecordedRanges&) = delete;

  // Those that began since the last call, in order, each with a space before it for every one that
  // it is inside of.
  std::vector<std::string> Take() { return std::exchange(names_, {}); }
  // How many are open.
  int depth() const { return depth_; }
  void OnPush(std::function<void(const std::string& name)> callback) {
    on_push_ = std::move(callback);
  }

 private:
  static void Push(const char* name) {
    names_.push_back(std::string(static_cast<std::size_t>(depth_++), ' ') + name);
    if (on_push_) on_push_(name);
  }
  static void Pop() { --depth_; }

  static constexpr RangeSink kSink{&Push, &Pop};
  static inline thread_local std::vector<std::string> names_;
  static inline thread_local int depth_ = 0;
  static inline thread_local std::function<void(const std::string&)> on_push_;
};

}  // namespace keel
