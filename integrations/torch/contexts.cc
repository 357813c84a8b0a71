#include "contexts.h"

#include <algorithm>
#include <utility>

namespace keel::torch {
namespace {

constexpr std::uint32_t kNumbers = (1U << 31) - 1;  // how far numbers go before they begin again

}  // namespace

void Contexts::Enable(Recorder recorder, std::size_t capacity, When when,
                      const std::vector<std::string>& skipped_actions) {
  const std::size_t kept = std::clamp<std::size_t>(capacity, 1, telemetry::EventLog::kMaxCapacity);
  const Status status = telemetry::EventLog::Global().Enable({.capacity = kept, .stacks = false});
  TORCH_CHECK(status.ok(), status.ToString());
  const std::lock_guard lock(mutex_);
  recorder_ = recorder;
  when_ = when;
  capacity_ = kept;
  Trim();
  skipped_ = {skipped_actions.begin(), skipped_actions.end()};
  recording_.store(true, std::memory_order_relaxed);
}

std::size_t Contexts::capacity() const {
  const std::lock_guard lock(mutex_);
  return capacity_;
}

void Contexts::Trim() {
  while (contexts_.size() > capacity_) {
    contexts_.pop_front();
    first_ = (first_ + 1) & kNumbers;
  }
}

void Contexts::Disable() {
  telemetry::EventLog::Global().Disable();
  recording_.store(false, std::memory_order_relaxed);
}

void Contexts::Clear() {
  telemetry::EventLog::Global().Clear();
  const std::lock_guard lock(mutex_);
  first_ = static_cast<std::uint32_t>((first_ + contexts_.size()) & kNumbers);
  contexts_.clear();
}

Contexts::Gathered Contexts::Gather(Call call) {
  Recorder recorder = nullptr;
  bool for_events = false;
  {
    const std::lock_guard lock(mutex_);
    const bool wanted = call == Call::kAllocation ? when_ >= When::STATE : when_ >= When::ALL;
    if (wanted) recorder = recorder_;
    for_events = when_ >= When::ALLOC;  // below that, frames are kept for live blocks only
  }
  Gathered gathered;
  if (recorder != nullptr) gathered.frames = recorder();
  Context context;
  if (for_events) context.frames = gathered.frames;
  if (!CompileContexts().empty()) context.compile_context = CompileContexts().back();
  context.user_metadata = UserMetadata();
  const std::lock_guard lock(mutex_);
  contexts_.push_back(std::move(context));
  Trim();
  const auto last = static_cast<std::uint32_t>((first_ + contexts_.size() - 1) & kNumbers);
  gathered.stack = telemetry::ForeignStack(last);
  return gathered;
}

void Contexts::KeepForBlock(void* pointer, Gathered gathered) {
  if (gathered.frames == nullptr) return;
  const std::lock_guard lock(mutex_);
  blocks_.insert_or_assign(reinterpret_cast<std::uint64_t>(pointer), std::move(gathered.frames));
  has_blocks_.store(true, std::memory_order_relaxed);
}

void Contexts::ForgetBlock(void* pointer) {
  if (!has_blocks_.load(std::memory_order_relaxed)) return;
  std::shared_ptr<c10::GatheredContext> last;  // goes without the lock
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(reinterpret_cast<std::uint64_t>(pointer));
  if (found == blocks_.end()) return;
  last = std::move(found->second);
  blocks_.erase(found);
}

Context Contexts::Of(telemetry::StackId stack) const {
  if (!telemetry::IsForeign(stack)) return {};
  const std::lock_guard lock(mutex_);
  const std::uint32_t place = (telemetry::ForeignNumber(stack) - first_) & kNumbers;
  return place < contexts_.size() ? contexts_[place] : Context{};
}

std::shared_ptr<c10::GatheredContext> Contexts::OfBlock(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(address);
  return found == blocks_.end() ? nullptr : found->second;
}

bool Contexts::Skips(telemetry::EventAction action) const {
  const std::lock_guard lock(mutex_);
  return skipped_.contains(std::string(telemetry::EventActionName(action)));
}

std::vector<std::string>& Contexts::CompileContexts() {
  thread_local std::vector<std::string> contexts;
  return contexts;
}

std::string& Contexts::UserMetadata() {
  thread_local std::string metadata;
  return metadata;
}

}  // namespace keel::torch
