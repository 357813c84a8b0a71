#include "keel/graph/memory_budget.h"

#include <fmt/format.h>

#include <algorithm>

namespace keel::graph {

Bytes MemoryBudget::UsedLocked() const {
  Bytes sum;
  for (const Share& share : shares_) sum += share.bytes;
  return sum;
}

Bytes MemoryBudget::used() const {
  const MutexLock lock(mutex_);
  return UsedLocked();
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
  const MutexLock lock(mutex_);
  while (UsedLocked() + bytes > limit_) {
    std::shared_ptr<User> oldest;
    for (const Share& share : shares_) {
      std::shared_ptr<User> candidate = share.user.lock();
      if (candidate == nullptr) continue;
      seen.push_back(candidate);
      if (std::find(asked.begin(), asked.end(), candidate) != asked.end()) continue;
      if (oldest == nullptr || candidate->LastUse() < oldest->LastUse()) oldest = candidate;
    }
    if (oldest == nullptr) {
      std::string holders;
      for (const Share& share : shares_) {
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
      std::erase_if(shares_, [&](const Share& share) { return share.key == oldest.get(); });
    }
  }
  shares_.push_back({.key = user.get(), .user = user, .bytes = bytes});
  return OkStatus();
}

void MemoryBudget::GiveBack(const User* user) {
  const MutexLock lock(mutex_);
  std::erase_if(shares_, [&](const Share& share) { return share.key == user; });
}

}  // namespace keel::graph
