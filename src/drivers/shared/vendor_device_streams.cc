// VendorDevice: streams, events and waiting.

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "drivers/shared/current_scope.h"
#include "drivers/shared/vendor_device.h"

namespace keel::vendor {

using hal::Primitive;

// --- Streams -----------------------------------------------------------------------------------

Status VendorDevice::CheckStream(hal::StreamHandle stream) const {
  if (!stream) {
    return InvalidArgument("a null handle is not a stream; GetDefaultStream has the default ones");
  }
  if (stream.value != api_.legacy_stream) return OkStatus();
  CurrentScope current(api_, context_);
  return CheckLegacy();
}

Status VendorDevice::CheckLegacy() const {
  if (!capabilities_.graphs) return OkStatus();
  // While a stream that synchronises with the legacy default stream captures, anything done on that
  // one breaks the capture, in any mode. Asking about its own capture is refused too, and harmless.
  int state = 0;
  const Code code = api_.capture_info(Pointer(api_.legacy_stream), &state, nullptr, nullptr);
  if (code == kSuccess || api_.judge(code).code != StatusCode::kFailedPrecondition) {
    return OkStatus();  // what else may be wrong the call itself will say
  }
  const Status status = StatusOf(api_, "", code);
  return FailedPrecondition(
             "a stream that synchronises with the legacy default stream is capturing: that one "
             "cannot be used before the capture ends")
      .WithVendor(status.vendor_code(), status.vendor_name());
}

Result<hal::StreamHandle> VendorDevice::CreateStream(const hal::StreamOptions& options) {
  KEEL_TRY(Enter(Primitive::kCreateStream));
  const int priority = std::clamp(options.priority, greatest_priority_, least_priority_);
  void* stream = TakeRetired(priority);
  if (stream == nullptr) {
    CurrentScope current(api_, context_);
    KEEL_TRY(Check(Primitive::kCreateStream, api_.stream_create(&stream, priority)));
  }
  MutexLock lock(streams_mutex_);
  streams_.emplace(stream, priority);
  return hal::StreamHandle{Value(stream)};
}

void* VendorDevice::TakeRetired(int priority) {
  RelaxedScope relaxed(api_);  // none of them captures
  MutexLock lock(streams_mutex_);
  for (auto it = retired_.begin(); it != retired_.end(); ++it) {
    if (it->priority != priority || QueryRetired(*it) != kSuccess) continue;
    void* const stream = it->stream;
    retired_.erase(it);
    return stream;
  }
  return nullptr;
}

Code VendorDevice::QueryRetired(Retired& retired) const {
  if (retired.idle) return kSuccess;
  const Code code = api_.stream_query(retired.stream);
  retired.idle = code == kSuccess;
  return code;
}

Status VendorDevice::DestroyStream(hal::StreamHandle stream) {
  KEEL_TRY(Enter(Primitive::kDestroyStream));
  KEEL_TRY(CheckStream(stream));
  if (IsDefault(stream)) return FailedPrecondition("a default stream cannot be destroyed");
  void* const native = Pointer(stream.value);
  MutexLock lock(streams_mutex_);
  const auto found = streams_.find(native);
  if (found == streams_.end()) {
    return InvalidArgument(
        fmt::format("{:#x} is not a stream that this device made, or was destroyed", stream.value));
  }
  hal::CaptureState state{};
  KEEL_TRY(Check(Primitive::kDestroyStream, LookAtCapture(native, &state)));
  if (state != hal::CaptureState::kNone) {
    return FailedPrecondition("the stream takes part in a capture; end that first");
  }
  // Make room: of the streams that have nothing to do a few are enough.
  constexpr std::size_t kKept = 16;
  if (retired_.size() >= kKept) {
    RelaxedScope relaxed(api_);
    std::erase_if(retired_, [&](Retired& retired) {
      return QueryRetired(retired) == kSuccess && api_.stream_destroy(retired.stream) == kSuccess;
    });
  }
  retired_.push_back({native, found->second});
  streams_.erase(found);
  return OkStatus();
}

Result<hal::StreamHandle> VendorDevice::GetDefaultStream(hal::DefaultStream which) {
  KEEL_TRY(Enter(Primitive::kGetDefaultStream));
  return hal::StreamHandle{which == hal::DefaultStream::kLegacy ? api_.legacy_stream
                                                                : api_.per_thread_stream};
}

Result<hal::StreamHandle> VendorDevice::BorrowStream(std::uint64_t native) {
  KEEL_TRY(Enter(Primitive::kBorrowStream));
  // To the library zero is the legacy default stream; here it is no stream.
  if (native == 0 || native == api_.legacy_stream) return hal::StreamHandle{api_.legacy_stream};
  if (native == api_.per_thread_stream) return hal::StreamHandle{native};
  void* context = nullptr;
  KEEL_TRY(Check(Primitive::kBorrowStream, api_.stream_context(Pointer(native), &context)));
  if (context != context_) {
    return InvalidArgument(fmt::format("stream {:#x} belongs to another device", native));
  }
  return hal::StreamHandle{native};
}

Result<hal::Completion> VendorDevice::QueryStream(hal::StreamHandle stream) {
  KEEL_TRY(Enter(Primitive::kQueryStream));
  KEEL_TRY(CheckStream(stream));
  CurrentScope current(api_, context_, NeedsCurrent(stream));
  CaptureModeScope mode(api_);
  const Code code = api_.stream_query(Pointer(stream.value));
  if (code == api_.not_ready) return hal::Completion::kPending;
  KEEL_TRY(Check(Primitive::kQueryStream, code));
  return hal::Completion::kDone;
}

// --- Waiting -----------------------------------------------------------------------------------

namespace {

// Sleeps of microseconds that last microseconds: by default the kernel may add fifty.
class ShortSleeps {
 public:
  ShortSleeps() = default;
  ~ShortSleeps() {
    if (before_ > 0) prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(before_));
  }
  ShortSleeps(const ShortSleeps&) = delete;
  ShortSleeps& operator=(const ShortSleeps&) = delete;

  void For(std::chrono::nanoseconds time) {
    if (before_ == 0) {
      before_ = prctl(PR_GET_TIMERSLACK);
      prctl(PR_SET_TIMERSLACK, 1UL);
    }
    std::this_thread::sleep_for(time);
  }

 private:
  int before_ = 0;
};

}  // namespace

template <class Query>
Status VendorDevice::Await(Primitive primitive, Query query, Deadline deadline) {
  using std::chrono::microseconds;
  using std::chrono::nanoseconds;
  Code code = query();
  if (code != api_.not_ready) return Check(primitive, code);
  const auto start = Deadline::Clock::now();
  auto asked = start;
  ShortSleeps sleeps;
  for (;;) {
    const auto now = Deadline::Clock::now();
    if (deadline.Passed()) {
      return DeadlineExceeded(
          fmt::format("{}: not done in time; the work goes on", hal::PrimitiveName(primitive)));
    }
    // Most waits are short, and a wake-up costs more than looking again. Longer ones sleep for a
    // fraction of what they took so far, so that they end a few percent late; and for several times
    // what looking took, so that they take no core even where that is slow.
    if (now - start >= microseconds(200)) {
      const nanoseconds late =
          std::clamp<nanoseconds>((now - start) / 32, microseconds(5), microseconds(1000));
      const nanoseconds rest = std::min<nanoseconds>((now - asked) * 9, microseconds(10'000));
      const nanoseconds pause = std::max(late, rest);
      sleeps.For(deadline.never() ? pause : std::min<nanoseconds>(pause, deadline.when() - now));
    }
    asked = Deadline::Clock::now();
    code = query();
    if (code != api_.not_ready) return Check(primitive, code);
  }
}

Code VendorDevice::Mark(void* stream, std::shared_ptr<void>* mark) {
  void* event = nullptr;
  {
    MutexLock lock(marks_mutex_);
    if (!spare_marks_.empty()) {
      event = spare_marks_.back();
      spare_marks_.pop_back();
    }
  }
  CurrentScope current(api_, context_);
  if (event == nullptr) {
    if (const Code code = api_.event_create(&event, /*timing=*/false); code != kSuccess) {
      return code;
    }
  }
  mark->reset(event, [this](void* used) {
    MutexLock lock(marks_mutex_);
    spare_marks_.push_back(used);
  });
  return api_.event_record(event, stream);
}

Status VendorDevice::SynchronizeStream(hal::StreamHandle stream, Deadline deadline) {
  KEEL_TRY(Enter(Primitive::kSynchronizeStream));
  KEEL_TRY(CheckStream(stream));
  CurrentScope current(api_, context_, NeedsCurrent(stream));
  CaptureModeScope mode(api_);
  void* const native = Pointer(stream.value);
  const auto query = [&] { return api_.stream_query(native); };
  // A default stream may mean other streams too: an event there would order more than it marks.
  if (IsDefault(stream)) return Await(Primitive::kSynchronizeStream, query, deadline);
  const Code code = query();
  if (code != api_.not_ready) return Check(Primitive::kSynchronizeStream, code);
  std::shared_ptr<void> mark;
  KEEL_TRY(Check(Primitive::kSynchronizeStream, Mark(native, &mark)));
  return Await(
      Primitive::kSynchronizeStream, [&] { return api_.event_query(mark.get()); }, deadline);
}

// Never by the library's own wait for a context: it breaks every capture that is open there,
// whoever's it is.
Status VendorDevice::Synchronize(Deadline deadline) {
  KEEL_TRY(Enter(Primitive::kSynchronize));
  CurrentScope current(api_, context_);
  CaptureModeScope mode(api_);
  std::vector<std::shared_ptr<void>> marks;
  const auto mark_busy = [&](void* stream, Code code) {
    return code == api_.not_ready ? Mark(stream, &marks.emplace_back()) : code;
  };
  const auto mark = [&](void* stream) -> Code {
    // A stream that captures runs nothing, and asking it would break its capture.
    hal::CaptureState state{};
    const Code code = LookAtCapture(stream, &state);
    if (code != kSuccess || state != hal::CaptureState::kNone) return code;
    return mark_busy(stream, api_.stream_query(stream));
  };
  const auto mark_all = [&]() -> Code {
    MutexLock lock(streams_mutex_);
    for (const auto& [stream, priority] : streams_) {
      if (const Code code = mark(stream); code != kSuccess) return code;
    }
    for (Retired& retired : retired_) {
      const Code code = mark_busy(retired.stream, QueryRetired(retired));
      if (code != kSuccess) return code;
    }
    return kSuccess;
  };
  KEEL_TRY(Check(Primitive::kSynchronize, mark_all()));
  for (const std::shared_ptr<void>& each : marks) {
    KEEL_TRY(
        Await(Primitive::kSynchronize, [&] { return api_.event_query(each.get()); }, deadline));
  }
  KEEL_TRY(CheckLegacy());
  void* const legacy = Pointer(api_.legacy_stream);
  return Await(Primitive::kSynchronize, [&] { return api_.stream_query(legacy); }, deadline);
}

// --- Events ------------------------------------------------------------------------------------

Result<hal::EventHandle> VendorDevice::CreateEvent(const hal::EventOptions& options) {
  KEEL_TRY(Enter(Primitive::kCreateEvent));
  CurrentScope current(api_, context_);
  void* event = nullptr;
  KEEL_TRY(Check(Primitive::kCreateEvent, api_.event_create(&event, options.timing)));
  return hal::EventHandle{Value(event)};
}

Status VendorDevice::DestroyEvent(hal::EventHandle event) {
  KEEL_TRY(Enter(Primitive::kDestroyEvent));
  if (!event) return InvalidArgument("a null handle is not an event");
  return Check(Primitive::kDestroyEvent, api_.event_destroy(Pointer(event.value)));
}

Status VendorDevice::RecordEvent(hal::EventHandle event, hal::StreamHandle stream) {
  KEEL_TRY(Enter(Primitive::kRecordEvent));
  KEEL_TRY(CheckStream(stream));
  CurrentScope current(api_, context_, NeedsCurrent(stream));
  return Check(Primitive::kRecordEvent,
               api_.event_record(Pointer(event.value), Pointer(stream.value)));
}

Status VendorDevice::WaitEvent(hal::StreamHandle stream, hal::EventHandle event) {
  KEEL_TRY(Enter(Primitive::kWaitEvent));
  KEEL_TRY(CheckStream(stream));
  CurrentScope current(api_, context_, NeedsCurrent(stream));
  return Check(Primitive::kWaitEvent,
               api_.stream_wait_event(Pointer(stream.value), Pointer(event.value), 0));
}

Result<hal::Completion> VendorDevice::QueryEvent(hal::EventHandle event) {
  KEEL_TRY(Enter(Primitive::kQueryEvent));
  if (!event) return InvalidArgument("a null handle is not an event");
  CaptureModeScope mode(api_);
  const Code code = api_.event_query(Pointer(event.value));
  if (code == api_.not_ready) return hal::Completion::kPending;
  KEEL_TRY(Check(Primitive::kQueryEvent, code));
  return hal::Completion::kDone;
}

Status VendorDevice::SynchronizeEvent(hal::EventHandle event, Deadline deadline) {
  KEEL_TRY(Enter(Primitive::kSynchronizeEvent));
  if (!event) return InvalidArgument("a null handle is not an event");
  CaptureModeScope mode(api_);
  return Await(
      Primitive::kSynchronizeEvent, [&] { return api_.event_query(Pointer(event.value)); },
      deadline);
}

Result<double> VendorDevice::ElapsedMilliseconds(hal::EventHandle start, hal::EventHandle end) {
  KEEL_TRY(Enter(Primitive::kElapsedMilliseconds));
  if (!start || !end) return InvalidArgument("a null handle is not an event");
  float milliseconds = 0;
  const Code code = api_.event_elapsed(&milliseconds, Pointer(start.value), Pointer(end.value));
  if (code != kSuccess && api_.judge(code).device_lost)
    return Fail(Primitive::kElapsedMilliseconds, code);
  if (code != kSuccess) {
    // The library's words for "not recorded", "not done" and "no timing" are three; ours is one.
    const Status status = StatusOf(api_, hal::PrimitiveName(Primitive::kElapsedMilliseconds), code);
    return FailedPrecondition(
               "both events must have timing (EventOptions::timing), be recorded and be done")
        .WithVendor(status.vendor_code(), status.vendor_name());
  }
  return static_cast<double>(milliseconds);
}

}  // namespace keel::vendor
