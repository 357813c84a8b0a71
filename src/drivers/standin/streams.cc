// Streams, events, and the work that is put on them.

#include <utility>

#include "drivers/standin/process.h"
#include "drivers/standin/resolve.h"
#include "hal/check_command.h"
#include "keel/hal/capture_mode.h"

namespace keel::standin {
namespace {

bool IsDefault(void* stream) {
  return stream == kNullStream || stream == kLegacyStream || stream == kPerThreadStream;
}

// An object of the current context: `make(device)` is its handle.
template <class T, class Make>
Cause Create(void** native, Table<T>& table, std::shared_ptr<T> object, Make make) {
  Process& process = Process::Get();
  std::shared_ptr<hal::Device> device;
  const Cause cause = process.Current(&object->context, &device);
  if (cause != Cause::kOk) return cause;
  const auto made = make(*device);
  if (!made.ok()) return Process::Judge(*object->context, made.status(), Cause::kIllegalState);
  object->handle = *made;
  *native = process.Insert(table, std::move(object));
  return Cause::kOk;
}

template <class T, class Handle>
Cause Destroy(void* native, Table<T>& table, Status (hal::Device::*destroy)(Handle),
              Cause refusal) {
  Process& process = Process::Get();
  std::shared_ptr<T> object;
  std::shared_ptr<hal::Device> device;
  Cause cause = process.Find(table, native, &object, &device);
  if (cause == Cause::kOk) {
    cause = Process::Judge(*object->context, ((*device).*destroy)(object->handle), refusal);
  }
  if (cause == Cause::kOk) process.Erase(table, native);
  return cause;
}

// The default streams of the current context have no handle of ours, but captures to remember.
Cause FindDefault(void* stream, StreamUse* use) {
  Process& process = Process::Get();
  const Cause cause = process.Current(&use->context, &use->device);
  if (cause != Cause::kOk) return cause;
  use->legacy = stream != kPerThreadStream;
  const auto handle = use->device->GetDefaultStream(use->legacy ? hal::DefaultStream::kLegacy
                                                                : hal::DefaultStream::kPerThread);
  if (!handle.ok()) return Process::Judge(*use->context, handle.status(), Cause::kIllegalState);
  MutexLock lock(process.mutex);
  std::shared_ptr<StreamObject>& object = process.default_streams[handle->value];
  if (object == nullptr || object->context != use->context) {
    object = std::make_shared<StreamObject>();
    object->context = use->context;
    object->handle = *handle;
    object->blocking = true;
  }
  use->object = object;
  return Cause::kOk;
}

// The streams that the legacy default stream of the context waits for, itself among them.
struct Blocking {
  std::vector<hal::StreamHandle> all;
  std::vector<hal::StreamHandle> capturing;
};
Blocking BlockingStreams(const Context& context) {
  Process& process = Process::Get();
  Blocking blocking;
  MutexLock lock(process.mutex);
  const auto look = [&](const auto& table) {
    for (const auto& [handle, stream] : table) {
      if (stream->context != &context || !stream->blocking) continue;
      blocking.all.push_back(stream->handle);
      if (stream->begun) blocking.capturing.push_back(stream->handle);
    }
  };
  look(process.streams);
  look(process.default_streams);
  return blocking;
}

// The legacy default stream would wait for a stream that captures, which it cannot.
Cause CheckImplicit(const StreamUse& use, Implicit implicit) {
  if (!use.legacy) return Cause::kOk;
  const Blocking blocking = BlockingStreams(*use.context);
  for (const hal::StreamHandle stream : blocking.capturing) {
    if (implicit == Implicit::kBreaks) BreakCapture(*use.device, stream);
  }
  return blocking.capturing.empty() ? Cause::kOk : Cause::kCaptureImplicit;
}

// What a refusal of work on this stream means, given its capture's state before.
Cause RefusalIn(hal::CaptureState before) {
  switch (before) {
    case hal::CaptureState::kNone:
      return Cause::kIllegalState;
    case hal::CaptureState::kActive:
      return Cause::kCaptureUnsupported;
    case hal::CaptureState::kInvalidated:
      return Cause::kCaptureInvalidated;
  }
  return Cause::kIllegalState;
}

Cause StateOf(const StreamUse& use, hal::CaptureState* state) {
  const auto found = use.device->GetCaptureState(use.handle());
  if (!found.ok()) return Process::Judge(*use.context, found.status(), Cause::kIllegalState);
  *state = *found;
  return Cause::kOk;
}

Status Submit(const StreamUse& use, const hal::Command& command) {
  hal::Device& device = *use.device;
  const hal::StreamHandle stream = use.handle();
  if (const auto* launch = std::get_if<hal::KernelLaunch>(&command)) {
    return device.LaunchKernel(stream, *launch);
  }
  if (const auto* copy = std::get_if<hal::Copy>(&command)) return device.EnqueueCopy(stream, *copy);
  if (const auto* fill = std::get_if<hal::Fill>(&command)) return device.EnqueueFill(stream, *fill);
  if (const auto* call = std::get_if<hal::HostCall>(&command)) {
    return device.CallHost(stream, *call);
  }
  if (const auto* write = std::get_if<hal::ValueWrite>(&command)) {
    return device.WriteValue(stream, *write);
  }
  if (const auto* wait = std::get_if<hal::ValueWait>(&command)) {
    return device.WaitValue(stream, *wait);
  }
  return InvalidArgument("only a graph has such a node");
}

}  // namespace

Cause FindStream(void* stream, StreamUse* use, Implicit implicit) {
  Process& process = Process::Get();
  if (IsDefault(stream)) {
    const Cause cause = FindDefault(stream, use);
    return cause == Cause::kOk ? CheckImplicit(*use, implicit) : cause;
  }
  const Cause cause = process.Find(process.streams, stream, &use->object);
  if (cause != Cause::kOk) return cause;
  use->context = use->object->context;
  return process.Open(*use->context, &use->device);
}

// --- Streams -------------------------------------------------------------------------------------

Cause CreateStream(void** stream, bool blocking, int priority) {
  auto object = std::make_shared<StreamObject>();
  object->blocking = blocking;
  return Create(stream, Process::Get().streams, std::move(object),
                [&](hal::Device& device) { return device.CreateStream({.priority = priority}); });
}

Cause DestroyStream(void* stream) {
  if (IsDefault(stream)) return Cause::kInvalidHandle;
  return Destroy(stream, Process::Get().streams, &hal::Device::DestroyStream,
                 Cause::kCaptureUnsupported);
}

Cause GetStreamContext(void* stream, void** context) {
  Process& process = Process::Get();
  if (IsDefault(stream)) {
    std::shared_ptr<hal::Device> device;
    Context* current = nullptr;
    const Cause cause = process.Current(&current, &device);
    if (cause == Cause::kOk) *context = current;
    return cause;
  }
  std::shared_ptr<StreamObject> object;
  const Cause cause = process.Find(process.streams, stream, &object);
  if (cause == Cause::kOk) *context = object->context;
  return cause;
}

Cause QueryStream(void* stream) {
  StreamUse use;
  if (const Cause cause = FindStream(stream, &use); cause != Cause::kOk) return cause;
  std::vector<hal::StreamHandle> asked = {use.handle()};
  // What the legacy default stream waits for belongs to it.
  if (use.legacy) asked = BlockingStreams(*use.context).all;
  Cause cause = Cause::kOk;
  for (const hal::StreamHandle one : asked) {
    const auto state = use.device->QueryStream(one);
    if (!state.ok()) {
      return Process::Judge(*use.context, state.status(), Cause::kCaptureUnsupported);
    }
    if (*state == hal::Completion::kPending) cause = Cause::kNotReady;
  }
  return cause;
}

// --- Events --------------------------------------------------------------------------------------

Cause CreateEvent(void** event, bool timing) {
  auto object = std::make_shared<EventObject>();
  object->timing = timing;
  return Create(event, Process::Get().events, std::move(object),
                [&](hal::Device& device) { return device.CreateEvent({.timing = timing}); });
}

Cause DestroyEvent(void* event) {
  return Destroy(event, Process::Get().events, &hal::Device::DestroyEvent, Cause::kIllegalState);
}

Cause RecordEvent(void* event, void* stream) {
  Process& process = Process::Get();
  std::shared_ptr<EventObject> object;
  StreamUse use;
  hal::CaptureState before = hal::CaptureState::kNone;
  Cause cause = FindStream(stream, &use);
  if (cause == Cause::kOk) cause = process.Find(process.events, event, &object);
  if (cause == Cause::kOk) cause = StateOf(use, &before);
  if (cause != Cause::kOk) return cause;
  if (object->context != use.context) return Cause::kInvalidHandle;
  cause = Process::Judge(*use.context, use.device->RecordEvent(object->handle, use.handle()),
                         RefusalIn(before));
  if (cause != Cause::kOk) return cause;
  MutexLock lock(process.mutex);
  object->recorded = true;
  object->captured = before != hal::CaptureState::kNone;
  return cause;
}

Cause QueryEvent(void* event) {
  Process& process = Process::Get();
  std::shared_ptr<EventObject> object;
  std::shared_ptr<hal::Device> device;
  Cause cause = process.Find(process.events, event, &object, &device);
  if (cause != Cause::kOk) return cause;
  const auto state = device->QueryEvent(object->handle);
  if (!state.ok()) {
    // Of a capture that is over there is nothing left to tell.
    Cause refusal = Cause::kCaptureUnsupported;
    MutexLock lock(process.mutex);
    if (object->captured) {
      refusal = process.open_captures > 0 ? Cause::kCapturedEvent : Cause::kInvalidValue;
    }
    return Process::Judge(*object->context, state.status(), refusal);
  }
  return *state == hal::Completion::kPending ? Cause::kNotReady : Cause::kOk;
}

Cause GetElapsed(float* milliseconds, void* start, void* end) {
  Process& process = Process::Get();
  std::shared_ptr<EventObject> objects[2];
  std::shared_ptr<hal::Device> device;
  Cause cause = process.Find(process.events, start, &objects[0]);
  if (cause == Cause::kOk) cause = process.Find(process.events, end, &objects[1]);
  if (cause == Cause::kOk) cause = process.Open(*objects[0]->context, &device);
  if (cause != Cause::kOk) return cause;
  {
    MutexLock lock(process.mutex);
    for (const auto& object : objects) {
      if (!object->timing || !object->recorded || object->context != objects[0]->context) {
        return Cause::kInvalidHandle;
      }
    }
  }
  const auto elapsed = device->ElapsedMilliseconds(objects[0]->handle, objects[1]->handle);
  if (!elapsed.ok()) {
    return Process::Judge(*objects[0]->context, elapsed.status(), Cause::kNotReady);
  }
  *milliseconds = static_cast<float>(*elapsed);
  return Cause::kOk;
}

Cause WaitEvent(void* stream, void* event) {
  Process& process = Process::Get();
  std::shared_ptr<EventObject> object;
  StreamUse use;
  hal::CaptureState before = hal::CaptureState::kNone;
  Cause cause = FindStream(stream, &use);
  if (cause == Cause::kOk) cause = process.Find(process.events, event, &object);
  if (cause == Cause::kOk) cause = StateOf(use, &before);
  if (cause != Cause::kOk) return cause;
  bool captured = false;
  {
    MutexLock lock(process.mutex);
    captured = object->captured;
  }
  Cause refusal = Cause::kCaptureInvalidated;
  // An event of a capture that is over looks like one that never was to a stream without one.
  if (before == hal::CaptureState::kNone) refusal = Cause::kInvalidValue;
  if (before == hal::CaptureState::kActive) {
    refusal = captured ? Cause::kCaptureMerge : Cause::kCaptureIsolation;
  }
  return Process::Judge(*use.context, use.device->WaitEvent(use.handle(), object->handle), refusal);
}

// --- Work ----------------------------------------------------------------------------------------

Cause Enqueue(void* stream, const Work& work) {
  StreamUse use;
  ResolvedWork resolved;
  hal::CaptureState before = hal::CaptureState::kNone;
  // What takes an address looks it up in the current context, whatever the stream knows.
  const bool looks_up =
      std::holds_alternative<Transfer>(work) || std::holds_alternative<hal::Fill>(work);
  if (looks_up && ThisThread().current == nullptr) return Cause::kInvalidContext;
  Cause cause = FindStream(stream, &use);
  if (cause == Cause::kOk) cause = Resolve(work, *use.context, *use.device, &resolved);
  if (cause == Cause::kOk) cause = StateOf(use, &before);
  if (cause != Cause::kOk) return cause;
  // The simulated device looks at the places of a copy when the graph runs.
  if (const auto* copy = std::get_if<hal::Copy>(&resolved.command);
      copy != nullptr && before == hal::CaptureState::kActive) {
    if (!MayUse(*use.device, copy->destination, copy->size, hal::Access::kWrite) ||
        !MayUse(*use.device, copy->source, copy->size, hal::Access::kRead)) {
      return Cause::kInvalidValue;
    }
  }
  cause = Process::Judge(*use.context, Submit(use, resolved.command), RefusalIn(before));
  if (before != hal::CaptureState::kActive) return cause;
  if (cause == Cause::kOk) {
    const auto frontier = use.device->GetCaptureFrontier(use.handle());
    if (frontier.ok() && frontier->size() == 1) {
      RememberWork(reinterpret_cast<void*>(frontier->front().value), work);
    }
  }
  return cause;
}

}  // namespace keel::standin
