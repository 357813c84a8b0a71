// Where the kernel takes the pages of new memory from.
#pragma once

#include <memory>

namespace keel::memory {

// While it lives, the calling thread's new pages come from `node` if it has any left. What was set
// before is restored. Does nothing for -1, or where the system does not allow it: memory of another
// node is slower, not wrong.
class ScopedNumaNode {
 public:
  explicit ScopedNumaNode(int node);
  ~ScopedNumaNode();
  ScopedNumaNode(const ScopedNumaNode&) = delete;
  ScopedNumaNode& operator=(const ScopedNumaNode&) = delete;

  bool active() const { return saved_ != nullptr; }

 private:
  struct Policy;
  std::unique_ptr<Policy> saved_;  // null: nothing was changed
};

}  // namespace keel::memory
