// MemoryBudget: how much device memory the slots of several executables may hold together.
//
// An executable takes memory with its first step. If the budget has no room then, the slots of
// others are given up, the one that was used longest ago first, until there is. An executable that
// is in use (a lease, a held output, a step that runs) is never touched; one whose slots were given
// up takes them again, and records again, with its next step.
//
// Thread-safe. Outlives the executables that name it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "keel/base/bytes.h"
#include "keel/base/export.h"
#include "keel/base/mutex.h"
#include "keel/base/status.h"

namespace keel::graph {

class KEEL_EXPORT MemoryBudget {
 public:
  explicit MemoryBudget(Bytes limit) : limit_(limit) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  Bytes limit() const { return limit_; }
  Bytes used() const KEEL_EXCLUDES(mutex_);

  // --- For executables ---------------------------------------------------------------------

  class User {
   public:
    virtual ~User() = default;
    virtual std::string BudgetName() const = 0;
    // Gives its memory up, unless it is in use. Must not call the budget.
    virtual bool TryGiveUp() = 0;
    // Larger is later.
    virtual std::uint64_t LastUse() const = 0;
  };
  // Makes room and takes it. kResourceExhausted says who holds the rest, all of them in use.
  Status Take(const std::shared_ptr<User>& user, Bytes bytes) KEEL_EXCLUDES(mutex_);
  // Nothing to do for one that has none.
  void GiveBack(const User* user) KEEL_EXCLUDES(mutex_);

 private:
  struct Share {
    const User* key = nullptr;
    std::weak_ptr<User> user;
    Bytes bytes;
  };
  Bytes UsedLocked() const KEEL_REQUIRES(mutex_);

  const Bytes limit_;
  mutable Mutex mutex_;
  std::vector<Share> shares_ KEEL_GUARDED_BY(mutex_);
};

}  // namespace keel::graph
