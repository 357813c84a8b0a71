#include "memory/numa_policy.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstddef>

namespace keel::memory {
namespace {

// Of the kernel's interface; the library that has names for it is not on every machine.
constexpr int kPreferred = 1;
constexpr std::size_t kMostNodes = 1024;
constexpr std::size_t kBits = sizeof(unsigned long) * CHAR_BIT;
using NodeMask = std::array<unsigned long, kMostNodes / kBits>;

}  // namespace

struct ScopedNumaNode::Policy {
  int mode = 0;
  NodeMask nodes{};
};

ScopedNumaNode::ScopedNumaNode(int node) {
  if (node < 0 || static_cast<std::size_t>(node) >= kMostNodes) return;
  auto saved = std::make_unique<Policy>();
  if (syscall(SYS_get_mempolicy, &saved->mode, saved->nodes.data(), kMostNodes, nullptr, 0) != 0) {
    return;
  }
  NodeMask wanted{};
  wanted[static_cast<std::size_t>(node) / kBits] = 1UL << (static_cast<std::size_t>(node) % kBits);
  if (syscall(SYS_set_mempolicy, kPreferred, wanted.data(), kMostNodes) != 0) return;
  saved_ = std::move(saved);
}

ScopedNumaNode::~ScopedNumaNode() {
  if (saved_ == nullptr) return;
  // The kernel wants no mask at all for a policy that has none.
  bool any = false;
  for (const unsigned long word : saved_->nodes) any = any || word != 0;
  syscall(SYS_set_mempolicy, saved_->mode, any ? saved_->nodes.data() : nullptr,
          any ? kMostNodes : 0);
}

}  // namespace keel::memory
