#include "memory/deferred_blocks.h"

#include <algorithm>
#include <utility>

namespace keel::memory {

void DeferredBlocks::AddUse(Block* block, hal::StreamHandle stream) {
  std::vector<hal::StreamHandle>& streams = uses_[block];
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
}

void DeferredBlocks::Defer(std::span<Block* const> blocks) {
  std::vector<std::uint64_t> touched;
  for (Block* const block : blocks) {
    const auto found = uses_.find(block);
    block->tag = static_cast<std::uint32_t>(found->second.size());
    for (const hal::StreamHandle stream : found->second) {
      Queue& queue = queues_[stream.value];
      if (!queue.open) {
        queue.batches.push_back(std::make_shared<Batch>());
        queue.batches.back()->stream = stream;
        queue.open = true;
      }
      queue.batches.back()->blocks.push_back(block);
      touched.push_back(stream.value);
    }
    uses_.erase(found);
  }
  for (const std::uint64_t stream : touched) {
    Queue& queue = queues_[stream];
    if (!queue.open || queue.batches.back()->blocks.size() < batch_) continue;
    queue.open = false;
    // One that fails is taken when memory is collected.
    static_cast<void>(Record(*queue.batches.back()));
  }
}

void DeferredBlocks::Flush() {
  for (auto& [stream, queue] : queues_) {
    if (!std::exchange(queue.open, false)) continue;
    static_cast<void>(Record(*queue.batches.back()));
  }
}

Status DeferredBlocks::Record(Batch& batch) {
  const auto record = [&]() -> Status {
    KEEL_ASSIGN(const hal::CaptureState state, device_->GetCaptureState(batch.stream));
    if (state != hal::CaptureState::kNone) return OkStatus();
    KEEL_ASSIGN(PooledEvent event, events_.Acquire());
    KEEL_TRY(event.Record(batch.stream));
    batch.event = std::make_shared<const PooledEvent>(std::move(event));
    return OkStatus();
  };
  Status status = record();
  if (!status.ok()) ++record_failures_;
  return status;
}

void DeferredBlocks::Release(Batch& batch, std::vector<Block*>* done) {
  for (Block* const block : batch.blocks) {
    if (--block->tag == 0) done->push_back(block);
  }
  batch.blocks.clear();
}

Result<bool> DeferredBlocks::Reached(Batch& batch) {
  if (batch.reached) return true;
  if (batch.event == nullptr) KEEL_TRY(Record(batch));
  if (batch.event == nullptr) return false;
  Result<hal::Completion> completion = batch.event->Query();
  if (!completion.ok()) {
    batch.event = nullptr;
    return std::move(completion).status();
  }
  return *completion == hal::Completion::kDone;
}

Status DeferredBlocks::Collect(std::vector<Block*>* done) {
  Flush();
  Status first;
  for (auto at = queues_.begin(); at != queues_.end();) {
    std::deque<std::shared_ptr<Batch>>& batches = at->second.batches;
    // Of one stream: what was deferred later is reached later. So the last says it for all, and
    // mostly does: memory is collected when it is needed, not when it was freed.
    if (batches.size() > 1) {
      const Result<bool> all = Reached(*batches.back());
      if (first.ok()) first = all.status();
      if (all.ok() && *all) {
        for (const std::shared_ptr<Batch>& batch : batches) batch->reached = true;
      }
    }
    while (!batches.empty()) {
      const Result<bool> reached = Reached(*batches.front());
      const bool lost = reached.status().code() == StatusCode::kDeviceLost;
      if (first.ok()) first = reached.status();
      if (!lost && (!reached.ok() || !*reached)) break;
      Release(*batches.front(), done);
      batches.pop_front();
    }
    at = batches.empty() ? queues_.erase(at) : std::next(at);
  }
  return first;
}

DeferredBlocks::Waiting DeferredBlocks::Oldest() const {
  Waiting oldest;
  for (const auto& [stream, queue] : queues_) {
    oldest.batch = queue.batches.front();
    oldest.event = oldest.batch->event;
    if (oldest.event != nullptr) break;
  }
  return oldest;
}

Status DeferredBlocks::Wait(hal::Device& device, const Waiting& waiting, Deadline deadline) {
  if (waiting.event != nullptr) return waiting.event->Synchronize(deadline);
  const hal::StreamHandle stream = waiting.batch->stream;
  // Synchronising it would break the recording.
  const Result<hal::CaptureState> state = device.GetCaptureState(stream);
  if (state.ok() && *state != hal::CaptureState::kNone) {
    return FailedPrecondition("a stream that used the memory is capturing; end that first");
  }
  Status status = state.ok() ? device.SynchronizeStream(stream, deadline) : state.status();
  // The stream is gone, against the rules; its work may still run.
  if (status.code() == StatusCode::kInvalidArgument) return device.Synchronize(deadline);
  return status;
}

}  // namespace keel::memory
