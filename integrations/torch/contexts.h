// Contexts: what PyTorch knows about the place of an allocation (Python frames, the graph that is
// being compiled, the program's own remarks), for the events of Keel's history.
//
// Gathering may take the interpreter's lock, so it is done before Keel is called: the event gets a
// number as its stack (telemetry::ScopedStack), and this class has what the number stands for, for
// as many of the newest events as the history keeps, and for every live block.
//
// Any thread, any time.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "keel/telemetry/event_log.h"
#include "keel/telemetry/stacks.h"

namespace keel::torch {

struct Context {
  std::shared_ptr<c10::GatheredContext> frames;
  std::string compile_context;
  std::string user_metadata;
};

class Contexts {
 public:
  using When = c10::cuda::CUDACachingAllocator::RecordContext;
  using Recorder = c10::cuda::CUDACachingAllocator::CreateContextFn;

  bool recording() const { return recording_.load(std::memory_order_relaxed); }
  // How many events are kept.
  std::size_t capacity() const;
  // Starts and stops Keel's history with it.
  void Enable(Recorder recorder, std::size_t capacity, When when,
              const std::vector<std::string>& skipped_actions);
  void Disable();
  void Clear();

  // What was found out before a call of Keel: for the events of that call, and for the block.
  struct Gathered {
    telemetry::StackId stack = telemetry::StackId::kNone;
    std::shared_ptr<c10::GatheredContext> frames;
  };
  // What kind of call it is says which setting asks for its frames.
  enum class Call { kAllocation, kOther };
  Gathered Gather(Call call);
  // After an allocation that began with Gather, and before a free.
  void KeepForBlock(void* pointer, Gathered gathered);
  void ForgetBlock(void* pointer);

  // Empty ones for what is no longer kept.
  Context Of(telemetry::StackId stack) const;
  std::shared_ptr<c10::GatheredContext> OfBlock(std::uint64_t address) const;
  bool Skips(telemetry::EventAction action) const;

  // The calling thread's.
  static std::vector<std::string>& CompileContexts();
  static std::string& UserMetadata();

 private:
  // To the capacity; with the lock.
  void Trim();

  std::atomic<bool> recording_{false};
  std::atomic<bool> has_blocks_{false};
  mutable std::mutex mutex_;
  Recorder recorder_ = nullptr;
  When when_ = When::NEVER;
  std::size_t capacity_ = 0;
  std::uint32_t first_ = 0;  // the number of contexts_.front()
  std::deque<Context> contexts_;
  std::unordered_map<std::uint64_t, std::shared_ptr<c10::GatheredContext>> blocks_;
  std::unordered_set<std::string> skipped_;
};

}  // namespace keel::torch
