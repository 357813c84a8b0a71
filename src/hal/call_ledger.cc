#include "hal/call_ledger.h"

#include <algorithm>
#include <string>
#include <thread>

namespace keel::hal {
namespace {

std::size_t IndexOf(Primitive primitive) { return static_cast<std::size_t>(primitive); }

}  // namespace

std::string LiveObject::ToString() const {
  return std::string(PrimitiveName(created_by)) + " #" + std::to_string(call) + ": " +
         keel::ToString(DeviceAddress(value));
}

Result<std::uint64_t> CallLedger::Begin(Primitive primitive) {
  if (!home_.here()) return FailedPrecondition("this device was opened before the process forked");
  const std::uint64_t number = number_.fetch_add(1, std::memory_order_relaxed) + 1;
  const std::uint64_t nth = counts_[IndexOf(primitive)].fetch_add(1, std::memory_order_relaxed) + 1;
  if (armed_.load(std::memory_order_relaxed)) KEEL_TRY(Obey(primitive, number, nth));
  return number;
}

Status CallLedger::Obey(Primitive primitive, std::uint64_t number, std::uint64_t nth) {
  Status error;
  std::chrono::microseconds delay{0};
  {
    MutexLock lock(mutex_);
    if (const auto rule = delay_.find(primitive);
        rule != delay_.end() && nth >= rule->second.target) {
      delay = rule->second.delay;
      delay_.erase(rule);
    }
    if (const auto rule = fail_.find(primitive);
        rule != fail_.end() && nth >= rule->second.target) {
      error = std::move(rule->second.error);
      fail_.erase(rule);
    }
    if (fail_any_.has_value() && number >= fail_any_->target) {
      error = std::move(fail_any_->error);
      fail_any_.reset();
    }
    if (!error.ok()) failed_ = primitive;
    UpdateArmedLocked();
  }
  if (delay.count() > 0) std::this_thread::sleep_for(delay);
  return error;
}

void CallLedger::UpdateArmedLocked() {
  armed_.store(fail_any_.has_value() || !fail_.empty() || !delay_.empty(),
               std::memory_order_relaxed);
}

std::uint64_t CallLedger::calls() const {
  return number_.load(std::memory_order_relaxed) - number_at_reset_.load(std::memory_order_relaxed);
}

std::uint64_t CallLedger::calls(Primitive primitive) const {
  const std::size_t index = IndexOf(primitive);
  return counts_[index].load(std::memory_order_relaxed) -
         counts_at_reset_[index].load(std::memory_order_relaxed);
}

void CallLedger::ResetCounts() {
  number_at_reset_.store(number_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  for (std::size_t i = 0; i < kPrimitiveCount; ++i) {
    counts_at_reset_[i].store(counts_[i].load(std::memory_order_relaxed),
                              std::memory_order_relaxed);
  }
}

void CallLedger::FailNth(std::optional<Primitive> scope, std::uint64_t n, Status error) {
  // An OK status would skip the device and report success.
  if (error.ok()) error = Internal("a call was failed on demand");
  MutexLock lock(mutex_);
  if (scope.has_value()) {
    const std::uint64_t now = counts_[IndexOf(*scope)].load(std::memory_order_relaxed);
    fail_.insert_or_assign(*scope, FailRule{now + n, std::move(error)});
  } else {
    fail_any_ = FailRule{number_.load(std::memory_order_relaxed) + n, std::move(error)};
  }
  UpdateArmedLocked();
}

void CallLedger::DelayNth(Primitive primitive, std::uint64_t n, std::chrono::microseconds delay) {
  MutexLock lock(mutex_);
  const std::uint64_t now = counts_[IndexOf(primitive)].load(std::memory_order_relaxed);
  delay_.insert_or_assign(primitive, DelayRule{now + n, delay});
  UpdateArmedLocked();
}

void CallLedger::ClearRules() {
  MutexLock lock(mutex_);
  fail_any_.reset();
  fail_.clear();
  delay_.clear();
  failed_.reset();
  UpdateArmedLocked();
}

std::optional<Primitive> CallLedger::failed() const {
  MutexLock lock(mutex_);
  return failed_;
}

void CallLedger::Add(Kind kind, const LiveObject& object, Bytes size) {
  MutexLock lock(mutex_);
  live_.emplace(std::pair(kind, object.value), Record{object, size});
}

void CallLedger::AddOnce(Kind kind, const LiveObject& object) {
  MutexLock lock(mutex_);
  const std::pair key(kind, object.value);
  if (!live_.contains(key)) live_.emplace(key, Record{object, Bytes(0)});
}

CallLedger::Records CallLedger::Take(Kind kind, std::uint64_t value) {
  Records taken;
  MutexLock lock(mutex_);
  const auto record = live_.find({kind, value});
  if (record != live_.end()) taken.insert(live_.extract(record));
  return taken;
}

CallLedger::Records CallLedger::TakeMappings(DeviceAddress address, Bytes size) {
  Records taken;
  MutexLock lock(mutex_);
  auto record = live_.lower_bound({Kind::kMapping, address.value()});
  while (record != live_.end() && record->first.first == Kind::kMapping) {
    const Bytes start = DeviceAddress(record->first.second) - address;
    if (start >= size || record->second.size > size - start) break;
    taken.insert(live_.extract(record++));
  }
  return taken;
}

void CallLedger::Restore(Records records) {
  MutexLock lock(mutex_);
  live_.merge(records);
}

std::vector<LiveObject> CallLedger::Live() const {
  std::vector<LiveObject> objects;
  {
    MutexLock lock(mutex_);
    objects.reserve(live_.size());
    for (const auto& [key, record] : live_) objects.push_back(record.object);
  }
  std::sort(objects.begin(), objects.end(),
            [](const LiveObject& a, const LiveObject& b) { return a.call < b.call; });
  return objects;
}

}  // namespace keel::hal
