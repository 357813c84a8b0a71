// MemoryBudget: how much device memory the slots of several executables may hold together.
//
// An executable takes memory with its first step. If the budget has no room then, the slots of
// others are given up, the one that was used longest ago first, until there is. An executable that
// is in use (a lease, a held output, a step that runs) is never touched; one whose slots were given
// up takes them again, and records again, with its next step. Memory is counted until it is freed:
// also while a device is not ready with it, and after the end of an executable whose last step
// still runs.
//
// Thread-safe. Outlives the executables that name it. A forked child begins with all of it: what
// its parent has is not the child's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "keel/base/bytes.h"
#include "keel/base/export.h"
#include "keel/base/status.h"

namespace keel::graph {

class KEEL_EXPORT MemoryBudget {
 public:
  explicit MemoryBudget(Bytes limit);
  ~MemoryBudget();
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  Bytes limit() const { return limit_; }
  Bytes used() const;

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
  Status Take(const std::shared_ptr<User>& user, Bytes bytes);
  // Nothing to do for one that has none.
  void GiveBack(const User* user);
  // What `user` has is `heir`'s from now on, until that gives it up or is gone.
  void Pass(const User* user, const std::shared_ptr<User>& heir);

 private:
  struct Shares;
  const Bytes limit_;
  const std::unique_ptr<Shares> shares_;
};

}  // namespace keel::graph
