#include "drivers/sim/capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "drivers/sim/sim_device.h"
#include "keel/hal/capture_mode.h"

namespace keel::sim {
namespace {

void Merge(std::vector<hal::NodeHandle>& into, const std::vector<hal::NodeHandle>& nodes) {
  for (const hal::NodeHandle node : nodes) {
    if (std::find(into.begin(), into.end(), node) == into.end()) into.push_back(node);
  }
}

Status Broken(const Capture& capture) {
  return FailedPrecondition(
      fmt::format("the capture was invalidated by {}; end it and record again", capture.broken_by));
}

}  // namespace

Capture* CaptureRegistry::Of(const SimStream& stream) {
  return stream.capture != nullptr && !stream.capture->over ? stream.capture.get() : nullptr;
}

void CaptureRegistry::Break(Capture& capture, std::string_view call) {
  if (capture.broken_by.empty()) capture.broken_by = call;
}

Status CaptureRegistry::Begin(const std::shared_ptr<SimStream>& stream, hal::CaptureMode mode) {
  if (stream->role() == SimStream::Role::kLegacy) {
    return InvalidArgument("the legacy default stream cannot capture; use a stream of your own");
  }
  MutexLock lock(mutex_);
  if (Of(*stream) != nullptr) return FailedPrecondition("the stream captures already");
  auto capture = std::make_shared<Capture>();
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = stream.get();
  capture->members.push_back(stream);
  stream->capture = capture;
  stream->frontier.clear();
  stream->capturing.store(true);
  open_.push_back(std::move(capture));
  open_count_.fetch_add(1);
  return OkStatus();
}

void CaptureRegistry::OverLocked(Capture& capture) {
  capture.over = true;
  for (const std::weak_ptr<SimStream>& member : capture.members) {
    if (const std::shared_ptr<SimStream> stream = member.lock();
        stream != nullptr && stream->capture.get() == &capture) {
      stream->capturing.store(false);
      stream->frontier.clear();
      stream->capture = nullptr;  // not the last reference: open_ has one
    }
  }
  std::erase_if(open_,
                [&](const std::shared_ptr<Capture>& open) { return open.get() == &capture; });
  open_count_.fetch_sub(1);
}

Result<std::shared_ptr<SimGraph>> CaptureRegistry::End(SimStream& stream) {
  MutexLock lock(mutex_);
  if (Of(stream) == nullptr) return FailedPrecondition("the stream captures nothing");
  const std::shared_ptr<Capture> capture = stream.capture;
  if (capture->origin != &stream) {
    return FailedPrecondition(
        "the stream only joined a capture; end it on the stream where it began");
  }
  if (capture->mode != hal::CaptureMode::kRelaxed &&
      capture->thread != std::this_thread::get_id()) {
    return FailedPrecondition(
        "the capture was begun by another thread; only a relaxed one may be ended here");
  }
  const std::vector<hal::NodeHandle> last = stream.frontier;
  OverLocked(*capture);
  if (!capture->broken_by.empty()) return Broken(*capture);
  if (!capture->graph->AllReach(last)) {
    return FailedPrecondition(
        "a stream that joined the capture was not joined back; record an event on it and wait for "
        "that on the stream where the capture began");
  }
  return capture->graph;
}

hal::CaptureState CaptureRegistry::State(const SimStream& stream) {
  MutexLock lock(mutex_);
  const Capture* capture = Of(stream);
  if (capture == nullptr) return hal::CaptureState::kNone;
  return capture->broken_by.empty() ? hal::CaptureState::kActive : hal::CaptureState::kInvalidated;
}

Result<std::vector<hal::NodeHandle>> CaptureRegistry::Frontier(const SimStream& stream) {
  MutexLock lock(mutex_);
  const Capture* capture = Of(stream);
  if (capture == nullptr) return FailedPrecondition("the stream captures nothing");
  if (!capture->broken_by.empty()) return Broken(*capture);
  return stream.frontier;
}

Result<bool> CaptureRegistry::Append(SimStream& stream, StoredCommand& command) {
  MutexLock lock(mutex_);
  Capture* capture = Of(stream);
  if (capture == nullptr) return false;
  if (!capture->broken_by.empty()) return Broken(*capture);
  KEEL_ASSIGN(const hal::NodeHandle node,
              capture->graph->Add(stream.frontier, std::move(command), stream.device().ordinal()));
  stream.frontier = {node};
  return true;
}

Result<bool> CaptureRegistry::Record(SimStream& stream, SimEvent& event) {
  MutexLock lock(mutex_);
  Capture* capture = Of(stream);
  if (capture == nullptr) {
    event.captured.store(false);
    event.capture = nullptr;
    event.nodes.clear();
    return false;
  }
  if (!capture->broken_by.empty()) return Broken(*capture);
  event.capture = stream.capture;
  event.nodes = stream.frontier;
  event.captured.store(true);
  return true;
}

Result<bool> CaptureRegistry::Wait(const std::shared_ptr<SimStream>& stream, SimEvent& event) {
  MutexLock lock(mutex_);
  Capture* mine = Of(*stream);
  if (mine != nullptr && !mine->broken_by.empty()) return Broken(*mine);
  if (event.capture == nullptr) {
    if (mine == nullptr) return false;
    MutexLock event_lock(event.mutex);
    if (event.ticket == nullptr) return true;
    Break(*mine, "WaitEvent for an event that was recorded outside of it");
    return FailedPrecondition(
        "a capturing stream cannot wait for work outside of its capture; the capture is broken");
  }
  if (event.capture->over) {
    return FailedPrecondition("the event was last recorded in a capture that is over");
  }
  if (mine == nullptr) {
    if (stream->role() == SimStream::Role::kLegacy) {
      return InvalidArgument("the legacy default stream cannot capture; use a stream of your own");
    }
    if (!event.capture->broken_by.empty()) return Broken(*event.capture);
    stream->capture = event.capture;
    stream->frontier = event.nodes;
    stream->capturing.store(true);
    event.capture->members.push_back(stream);
    return true;
  }
  if (mine != event.capture.get()) {
    Break(*mine, "WaitEvent for an event of another capture");
    Break(*event.capture, "WaitEvent from another capture");
    return FailedPrecondition("two captures cannot wait for each other; both are broken");
  }
  Merge(stream->frontier, event.nodes);
  return true;
}

Status CaptureRegistry::CheckUnsafe(std::string_view primitive) {
  if (open_count_.load(std::memory_order_acquire) == 0) return OkStatus();
  const hal::CaptureMode mode = hal::ThreadCaptureMode();
  if (mode == hal::CaptureMode::kRelaxed) return OkStatus();
  MutexLock lock(mutex_);
  bool refused = false;
  for (const std::shared_ptr<Capture>& capture : open_) {
    const bool own = capture->thread == std::this_thread::get_id() &&
                     capture->mode != hal::CaptureMode::kRelaxed;
    const bool everybody =
        mode == hal::CaptureMode::kGlobal && capture->mode == hal::CaptureMode::kGlobal;
    if (!own && !everybody) continue;
    Break(*capture, primitive);
    refused = true;
  }
  if (!refused) return OkStatus();
  return FailedPrecondition(fmt::format(
      "{} is unsafe while a capture is open, and broke it; call it before the capture, or with the "
      "thread's capture mode relaxed (ScopedCaptureMode)",
      primitive));
}

Status CaptureRegistry::CheckStream(const SimStream& stream, std::string_view primitive) {
  if (!stream.capturing.load()) return OkStatus();
  MutexLock lock(mutex_);
  Capture* capture = Of(stream);
  if (capture == nullptr) return OkStatus();
  Break(*capture, primitive);
  return FailedPrecondition(
      fmt::format("{} of a stream that captures, which breaks the capture", primitive));
}

Status CaptureRegistry::CheckEvent(SimEvent& event, std::string_view primitive) {
  if (!event.captured.load()) return OkStatus();
  MutexLock lock(mutex_);
  if (event.capture == nullptr) return OkStatus();
  if (!event.capture->over) Break(*event.capture, primitive);
  return FailedPrecondition(
      fmt::format("{} of an event that was last recorded in a capture", primitive));
}

void CaptureRegistry::Forget(const SimDevice& device) {
  MutexLock lock(mutex_);
  const std::vector<std::shared_ptr<Capture>> open = open_;
  for (const std::shared_ptr<Capture>& capture : open) {
    if (&capture->origin->device() == &device) OverLocked(*capture);
  }
}

}  // namespace keel::sim
