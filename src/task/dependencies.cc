#include "task/dependencies.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace keel::task {

void Dependencies::Add(TaskKey task, std::span<const Touch> touches,
                       std::vector<TaskKey>& waits_for) {
  waits_for.clear();
  for (const Touch& touch : touches) {
    if (touch.begin >= touch.end) continue;
    SpaceState& space = spaces_[touch.space];
    if (touch.writes) {
      Write(space.segments, task, touch, waits_for);
    } else {
      Read(space.segments, task, touch, waits_for);
    }
    if (space.segments.size() >= space.sweep_at) Sweep(space);
  }
  if (waits_for.size() > 1) {
    std::sort(waits_for.begin(), waits_for.end());
    waits_for.erase(std::unique(waits_for.begin(), waits_for.end()), waits_for.end());
  }
  std::erase(waits_for, task);
}

void Dependencies::Find(const Touch& touch, std::vector<TaskKey>& tasks) const {
  tasks.clear();
  if (touch.begin >= touch.end) return;
  const Segments& segments = spaces_[touch.space].segments;
  auto at = segments.upper_bound(touch.begin);
  if (at != segments.begin() && std::prev(at)->second.end > touch.begin) --at;
  const std::uint64_t pass = ++passes_;
  for (; at != segments.end() && at->first < touch.end; ++at) {
    Collect(at->second, touch.writes, tasks, pass);
  }
  std::sort(tasks.begin(), tasks.end());
  tasks.erase(std::unique(tasks.begin(), tasks.end()), tasks.end());
}

void Dependencies::SplitAt(Segments& segments, std::uint64_t at) {
  auto next = segments.lower_bound(at);
  if (next == segments.begin()) return;
  const auto before = std::prev(next);
  if (before->second.end <= at) return;
  Segment& head = before->second;
  if (!head.readers.empty()) {
    auto common = std::make_shared<Common>();
    common->readers = std::exchange(head.readers, {});
    common->before = std::move(head.common);
    head.common = std::move(common);
    head.sweep_at = kFirstSweep;
  }
  Segment tail = head;
  head.end = at;
  segments.emplace_hint(next, at, std::move(tail));
}

Dependencies::Common::~Common() {
  while (before != nullptr && before.use_count() == 1) before = std::move(before->before);
}

void Dependencies::Collect(const Segment& segment, bool writes, std::vector<TaskKey>& tasks,
                           std::uint64_t pass) const {
  if (keys_.alive(segment.writer)) tasks.push_back(segment.writer);
  if (!writes) return;
  const auto add = [&](const std::vector<TaskKey>& readers) {
    for (const TaskKey reader : readers) {
      if (keys_.alive(reader)) tasks.push_back(reader);
    }
  };
  add(segment.readers);
  for (Common* at = segment.common.get(); at != nullptr && at->pass != pass;
       at = at->before.get()) {
    at->pass = pass;
    add(at->readers);
  }
}

void Dependencies::EraseDone(std::vector<TaskKey>& tasks) const {
  std::erase_if(tasks, [this](TaskKey task) { return !keys_.alive(task); });
}

void Dependencies::AddReader(Segment& segment, TaskKey task) const {
  // Two views of one task.
  if (!segment.readers.empty() && segment.readers.back() == task) return;
  if (segment.readers.size() >= segment.sweep_at) {
    EraseDone(segment.readers);
    segment.sweep_at = std::max(kFirstSweep, 2 * segment.readers.size());
  }
  segment.readers.push_back(task);
}

void Dependencies::Read(Segments& segments, TaskKey task, const Touch& touch,
                        std::vector<TaskKey>& waits_for) {
  SplitAt(segments, touch.begin);
  SplitAt(segments, touch.end);
  std::uint64_t covered = touch.begin;
  auto at = segments.lower_bound(touch.begin);
  while (covered < touch.end) {
    if (at == segments.end() || at->first > covered) {
      const std::uint64_t end = at == segments.end() ? touch.end : std::min(at->first, touch.end);
      Segment& fresh = segments.emplace_hint(at, covered, Segment{})->second;
      fresh.end = end;
      fresh.readers.push_back(task);
      covered = end;
      continue;
    }
    Collect(at->second, false, waits_for, 0);
    AddReader(at->second, task);
    covered = at->second.end;
    ++at;
  }
}

void Dependencies::Write(Segments& segments, TaskKey task, const Touch& touch,
                         std::vector<TaskKey>& waits_for) {
  SplitAt(segments, touch.begin);
  SplitAt(segments, touch.end);
  auto at = segments.lower_bound(touch.begin);
  Segment* whole = nullptr;
  const std::uint64_t pass = ++passes_;
  while (at != segments.end() && at->first < touch.end) {
    Collect(at->second, true, waits_for, pass);
    // The first one that begins where the range does becomes the range, without an allocation.
    if (at->first == touch.begin) {
      whole = &at->second;
      ++at;
    } else {
      at = segments.erase(at);
    }
  }
  if (whole == nullptr) whole = &segments.emplace_hint(at, touch.begin, Segment{})->second;
  whole->end = touch.end;
  whole->writer = task;
  whole->readers.clear();
  whole->common.reset();
}

void Dependencies::Sweep(SpaceState& space) const {
  const std::uint64_t pass = ++passes_;
  std::vector<Common*> fresh;
  const auto skip_empty = [](std::shared_ptr<Common>& link) {
    if (link == nullptr || !link->readers.empty()) return;
    std::shared_ptr<Common> next = link->before;
    link = std::move(next);
  };
  for (auto at = space.segments.begin(); at != space.segments.end();) {
    Segment& segment = at->second;
    EraseDone(segment.readers);
    // Who is done is so for all that share the list.
    fresh.clear();
    for (Common* each = segment.common.get(); each != nullptr && each->pass != pass;
         each = each->before.get()) {
      each->pass = pass;
      EraseDone(each->readers);
      fresh.push_back(each);
    }
    // The oldest first, so that no link leads to two empty ones in a row.
    for (auto each = fresh.rbegin(); each != fresh.rend(); ++each) skip_empty((*each)->before);
    skip_empty(segment.common);
    if (segment.readers.empty() && segment.common == nullptr && !keys_.alive(segment.writer)) {
      at = space.segments.erase(at);
    } else {
      ++at;
    }
  }
  space.sweep_at = std::max(kFirstSweep, 2 * space.segments.size());
}

std::size_t Dependencies::segments() const {
  std::size_t count = 0;
  for (const SpaceState& space : spaces_) count += space.segments.size();
  return count;
}

std::size_t Dependencies::entries() const {
  std::size_t count = 0;
  const std::uint64_t pass = ++passes_;
  for (const SpaceState& space : spaces_) {
    for (const auto& [begin, segment] : space.segments) {
      count += segment.readers.size() + (segment.writer != 0 ? 1 : 0);
      for (Common* at = segment.common.get(); at != nullptr && at->pass != pass;
           at = at->before.get()) {
        at->pass = pass;
        count += at->readers.size();
      }
    }
  }
  return count;
}

std::size_t FindConflict(std::span<const Touch> touches, std::span<const std::size_t> groups) {
  std::vector<std::size_t> order(touches.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(touches[a].space, touches[a].begin) <
           std::pair(touches[b].space, touches[b].begin);
  });
  // What reaches furthest so far in the space, for reads and for writes: the furthest of any group,
  // and the furthest of any other group than that one's.
  struct Furthest {
    std::uint64_t end = 0;
    std::size_t group = 0;
    std::uint64_t other_end = 0;
    std::uint64_t Of(std::size_t group_of_asker) const {
      return group_of_asker == group ? other_end : end;
    }
    void Add(std::uint64_t to, std::size_t of) {
      if (of == group || end == 0) {
        group = of;
        end = std::max(end, to);
      } else if (to > end) {
        other_end = end;
        end = to;
        group = of;
      } else {
        other_end = std::max(other_end, to);
      }
    }
  };
  Furthest any;
  Furthest written;
  Space space = 0;
  for (const std::size_t i : order) {
    const Touch& touch = touches[i];
    if (touch.begin >= touch.end) continue;
    if (touch.space != space) {
      any = written = Furthest{};
      space = touch.space;
    }
    if ((touch.writes ? any : written).Of(groups[i]) > touch.begin) return i;
    any.Add(touch.end, groups[i]);
    if (touch.writes) written.Add(touch.end, groups[i]);
  }
  return touches.size();
}

}  // namespace keel::task
