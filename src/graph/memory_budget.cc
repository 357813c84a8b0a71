#include "keel/graph/memory_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/fork.h"
#include "keel/base/mutex.h"

namespace keel::graph {

struct MemoryBudget::Shares {
  struct Share {
    const User* key = nullptr;
    std::weak_ptr<User> user;
    Bytes bytes;
    bool inherited = false;  // ends with its user, who may end where this lock is held
  };
  struct Own {
    Bytes UsedLocked() KEEL_REQUIRES(mutex) {
      std::erase_if(all,
                    [](const Share& share) { return share.inherited && share.user.expired(); });
      Bytes sum;
      for (const Share& share : all) sum += share.bytes;
      return sum;
    }

    Mutex mutex;
    std::vector<Share> all KEEL_GUARDED_BY(mutex);
  };
  Shares() = default;
  ~Shares() { own.End(); }
  Shares(const Shares&) = delete;
  Shares& operator=(const Shares&) = delete;

  PerProcess<Own> own;
};

MemoryBudget::MemoryBudget(Bytes limit) : limit_(limit), shares_(std::make_unique<Shares>()) {}
MemoryBudget::~MemoryBudget() = default;

Bytes MemoryBudget::used() const {
  Shares::Own& shares = shares_->own.Get();
  const MutexLock lock(shares.mutex);
  return shares.UsedLocked();
}

Status MemoryBudget::Take(const std::shared_ptr<User>& user, Bytes bytes) {
  if (bytes > limit_) {
    return ResourceExhausted(fmt::format("'{}' needs {} for its slots, and the budget is {}",
                                         user->BudgetName(), keel::ToString(bytes),
                                         keel::ToString(limit_)));
  }
  // Whoever was asked once is not asked again; and if it goes meanwhile, it does so after the lock.
  std::vector<std::shared_ptr<User>> asked = {user};
  std::vector<std::shared_ptr<User>> seen;
  Shares::Own& shares = shares_->own.Get();
  const MutexLock lock(shares.mutex);
  while (shares.UsedLocked() + bytes > limit_) {
    std::shared_ptr<User> oldest;
    for (const Shares::Share& share : shares.all) {
      std::shared_ptr<User> candidate = share.user.lock();
      if (candidate == nullptr) continue;
      seen.push_back(candidate);
      if (std::find(asked.begin(), asked.end(), candidate) != asked.end()) continue;
      if (oldest == nullptr || candidate->LastUse() < oldest->LastUse()) oldest = candidate;
    }
    if (oldest == nullptr) {
      std::string holders;
      for (const Shares::Share& share : shares.all) {
        std::shared_ptr<User> holder = share.user.lock();
        seen.push_back(holder);
        holders +=
            fmt::format("{}{} by '{}'", holders.empty() ? "" : ", ", keel::ToString(share.bytes),
                        holder != nullptr ? holder->BudgetName() : "one that ends");
      }
      return ResourceExhausted(
          fmt::format("'{}' needs {} for its slots; of the budget of {}, {} are held, and in use",
                      user->BudgetName(), keel::ToString(bytes), keel::ToString(limit_), holders));
    }
    asked.push_back(oldest);
    if (oldest->TryGiveUp()) {
      std::erase_if(shares.all,
                    [&](const Shares::Share& share) { return share.key == oldest.get(); });
    }
  }
  shares.all.push_back({.key = user.get(), .user = user, .bytes = bytes});
  return OkStatus();
}

void MemoryBudget::GiveBack(const User* user) {
  Shares::Own& shares = shares_->own.Get();
  const MutexLock lock(shares.mutex);
  std::erase_if(shares.all, [&](const Shares::Share& share) { return share.key == user; });
}

void MemoryBudget::Pass(const User* user, const std::shared_ptr<User>& heir) {
  Shares::Own& shares = shares_->own.Get();
  const MutexLock lock(shares.mutex);
  for (Shares::Share& share : shares.all) {
    if (share.key != user) continue;
    share.key = heir.get();
    share.user = heir;
    share.inherited = true;
  }
}

}  // namespace keel::graph
