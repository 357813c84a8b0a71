#include "keel/trace/segment_history.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace keel::trace {
namespace {

// Where a range ends; addresses come from files and may not leave room for the size.
std::uint64_t EndOf(std::uint64_t address, std::uint64_t size) {
  return size > UINT64_MAX - address ? UINT64_MAX : address + size;
}

// Ranges that are reserved now, and those that were.
class Regions {
 public:
  void Open(const Event& event, Moment moment) {
    Close(event.address, event.size, moment, nullptr);  // its end was not recorded
    if (event.size == 0) return;
    open_[event.address] = {.address = event.address,
                            .size = EndOf(event.address, event.size) - event.address,
                            .stream = event.stream,
                            .start = moment,
                            .is_expandable = event.action == Action::kSegmentMap};
  }

  // Ends what is open in the range. What is not becomes a region from before, like `unknown`.
  void Close(std::uint64_t address, std::uint64_t size, Moment moment, const Region* unknown) {
    const std::uint64_t end = EndOf(address, size);
    std::uint64_t next = address;  // up to here it is done
    for (auto region = FirstAfter(address); region != open_.end() && region->first < end;) {
      const Region whole = region->second;
      const std::uint64_t whole_end = whole.address + whole.size;
      region = open_.erase(region);
      const std::uint64_t from = std::max(whole.address, address);
      const std::uint64_t to = std::min(whole_end, end);
      if (whole.address < from) Put(whole, whole.address, from);
      if (to < whole_end) Put(whole, to, whole_end);
      AddUnknown(next, from, moment, unknown);
      Region part = whole;
      part.address = from;
      part.size = to - from;
      part.end = moment;
      done_.push_back(part);
      next = to;
    }
    AddUnknown(next, end, moment, unknown);
  }

  // What is there at the end and was not seen to be taken was there before.
  void CoverAtEnd(const Segment& segment) {
    const Region unknown{.stream = segment.stream, .is_expandable = segment.is_expandable};
    const std::uint64_t end = EndOf(segment.address, segment.total_size);
    std::uint64_t next = segment.address;
    for (auto region = FirstAfter(segment.address); region != open_.end() && region->first < end;
         ++region) {
      AddUnknown(next, std::min(region->first, end), kNever, &unknown);
      next = std::max(next, region->second.address + region->second.size);
    }
    AddUnknown(next, end, kNever, &unknown);
  }

  std::vector<Region> Take() && {
    for (const auto& [address, region] : open_) done_.push_back(region);
    std::sort(done_.begin(), done_.end(), [](const Region& a, const Region& b) {
      return std::tie(a.address, a.start) < std::tie(b.address, b.start);
    });
    return std::move(done_);
  }

 private:
  std::map<std::uint64_t, Region>::iterator FirstAfter(std::uint64_t address) {
    auto region = open_.lower_bound(address);
    if (region != open_.begin()) {
      const auto before = std::prev(region);
      if (before->second.address + before->second.size > address) region = before;
    }
    return region;
  }

  void Put(Region region, std::uint64_t from, std::uint64_t to) {
    region.address = from;
    region.size = to - from;
    open_[from] = region;
  }

  void AddUnknown(std::uint64_t from, std::uint64_t to, Moment moment, const Region* unknown) {
    if (unknown == nullptr || from >= to) return;
    Region region = *unknown;
    region.address = from;
    region.size = to - from;
    region.end = moment;
    done_.push_back(region);
  }

  std::map<std::uint64_t, Region> open_;  // by address; none overlap
  std::vector<Region> done_;
};

// Tiles a segment with the blocks that begin in it, in order of address.
class Tiling {
 public:
  explicit Tiling(Segment& segment) : segment_(segment), next_(segment.address) {}

  std::uint64_t end() const { return EndOf(segment_.address, segment_.total_size); }

  void Add(const Allocation& allocation, Moment moment) {
    if (allocation.address < next_) return;  // overlaps the one before
    Fill(allocation.address);
    Block block;
    block.address = allocation.address;
    block.size = std::min(allocation.size, end() - allocation.address);
    if (block.size == 0) return;
    block.requested_size = allocation.size;
    block.state =
        allocation.free_requested <= moment ? BlockState::kPendingFree : BlockState::kAllocated;
    block.stack = allocation.stack;
    block.tag = allocation.tag;
    next_ = block.address + block.size;
    segment_.active_size += block.size;
    segment_.requested_size += block.requested_size;
    if (block.state == BlockState::kAllocated) segment_.allocated_size += block.size;
    segment_.blocks.push_back(block);
  }

  void Finish() { Fill(end()); }

 private:
  void Fill(std::uint64_t to) {
    if (next_ >= to) return;
    segment_.blocks.push_back({.address = next_, .size = to - next_});
    next_ = to;
  }

  Segment& segment_;
  std::uint64_t next_;
};

}  // namespace

std::vector<Region> ReservedRegions(const Snapshot& snapshot, int device) {
  Regions regions;
  if (device >= 0 && static_cast<std::size_t>(device) < snapshot.devices.size()) {
    Moment moment = 0;
    for (const Event& event : snapshot.devices[static_cast<std::size_t>(device)]) {
      ++moment;
      switch (event.action) {
        case Action::kSegmentAlloc:
        case Action::kSegmentMap:
          regions.Open(event, moment);
          break;
        case Action::kSegmentFree:
        case Action::kSegmentUnmap: {
          const Region unknown{.stream = event.stream,
                               .is_expandable = event.action == Action::kSegmentUnmap};
          regions.Close(event.address, event.size, moment, &unknown);
          break;
        }
        default:
          break;
      }
    }
  }
  for (const Segment& segment : snapshot.segments) {
    if (segment.device == device) regions.CoverAtEnd(segment);
  }
  return std::move(regions).Take();
}

std::vector<Segment> SegmentsAt(const Snapshot& snapshot, const Timeline& timeline,
                                const std::vector<Region>& regions, Moment moment) {
  std::vector<Segment> segments;
  if (moment == timeline.last()) {
    for (const Segment& segment : snapshot.segments) {
      if (segment.device == timeline.device) segments.push_back(segment);
    }
    if (!segments.empty()) return segments;
  }
  for (const Region& region : regions) {
    if (!region.live_at(moment)) continue;
    if (!segments.empty()) {
      Segment& last = segments.back();
      if (region.is_expandable && last.is_expandable && region.stream == last.stream &&
          region.address == last.address + last.total_size) {
        last.total_size += region.size;
        continue;
      }
    }
    Segment& segment = segments.emplace_back();
    segment.device = timeline.device;
    segment.address = region.address;
    segment.total_size = region.size;
    segment.stream = region.stream;
    segment.is_expandable = region.is_expandable;
  }
  std::vector<const Allocation*> live;
  for (const Allocation& allocation : timeline.allocations) {
    if (allocation.live_at(moment)) live.push_back(&allocation);
  }
  // Of two at one address, which no sound recording has, the one that came first.
  std::sort(live.begin(), live.end(), [](const Allocation* a, const Allocation* b) {
    return std::tie(a->address, a->start) < std::tie(b->address, b->start);
  });
  auto next = live.begin();
  for (Segment& segment : segments) {
    Tiling tiling(segment);
    while (next != live.end() && (*next)->address < segment.address) ++next;
    for (; next != live.end() && (*next)->address < tiling.end(); ++next) {
      tiling.Add(**next, moment);
    }
    tiling.Finish();
  }
  return segments;
}

}  // namespace keel::trace
