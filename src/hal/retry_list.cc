#include "keel/hal/retry_list.h"

#include <algorithm>
#include <utility>

namespace keel::hal {

void RetryList::Add(Entry entry) {
  MutexLock lock(mutex_);
  entries_.emplace(next_number_++, std::move(entry));
  size_.fetch_add(1, std::memory_order_release);
}

Status RetryList::Drain() {
  Status oldest;
  bool progress = true;
  while (progress && !empty()) {
    progress = false;
    oldest = OkStatus();
    std::uint64_t next = 0;
    std::uint64_t end = 0;
    {
      // What is added meanwhile waits for the next pass: a list that others keep filling must not
      // hold this thread.
      MutexLock lock(mutex_);
      end = next_number_;
    }
    while (true) {
      Entries::node_type node = TakeFrom(next, end);
      if (!node) break;
      next = node.key() + 1;
      Status status = node.mapped().attempt();
      if (status.ok() || status.code() == StatusCode::kDeviceLost) {
        progress = true;
        // Dropping the entry may give back what it kept, and that may add to this list.
        node = {};
        size_.fetch_sub(1, std::memory_order_release);
        continue;
      }
      if (oldest.ok()) oldest = std::move(status).Annotate(node.mapped().what);
      MutexLock lock(mutex_);
      entries_.insert(std::move(node));
    }
  }
  const std::size_t left = size();
  if (left == 0) return OkStatus();
  const std::string count = std::to_string(left) + " not given back yet";
  // Another thread has taken them all and is trying them now.
  if (oldest.ok()) return Unavailable(count + ", being tried by another thread");
  return std::move(oldest).Annotate(count);
}

std::vector<std::string> RetryList::Abandon() {
  std::vector<std::string> abandoned;
  while (true) {
    Entries dropped;
    {
      MutexLock lock(mutex_);
      dropped.swap(entries_);
    }
    if (dropped.empty()) return abandoned;
    size_.fetch_sub(dropped.size(), std::memory_order_release);
    for (const auto& [number, entry] : dropped) abandoned.push_back(entry.what);
  }
}

std::vector<std::string> RetryList::List() const {
  MutexLock lock(mutex_);
  std::vector<std::string> list;
  list.reserve(entries_.size());
  for (const auto& [number, entry] : entries_) list.push_back(entry.what);
  return list;
}

RetryList::Entries::node_type RetryList::TakeFrom(std::uint64_t first, std::uint64_t end) {
  MutexLock lock(mutex_);
  const auto entry = entries_.lower_bound(first);
  if (entry == entries_.end() || entry->first >= end) return {};
  return entries_.extract(entry);
}

}  // namespace keel::hal
