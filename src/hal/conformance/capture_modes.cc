// Which calls break a capture, from which thread, and that no call of a thread in the default mode
// does.

#include <array>
#include <functional>
#include <thread>

#include "hal/conformance/context.h"
#include "hal/conformance/every_primitive.h"
#include "keel/hal/capture_mode.h"
#include "keel/hal/primitive.h"

namespace keel::hal::conformance {
namespace {

constexpr std::array kModes = {CaptureMode::kGlobal, CaptureMode::kThreadLocal,
                               CaptureMode::kRelaxed};

const char* Name(CaptureMode mode) {
  return std::array{"global", "thread-local", "relaxed"}.at(static_cast<std::size_t>(mode));
}

CaptureState StateOf(CaseContext& context, const Stream& stream) {
  const Result<CaptureState> state = context.device().GetCaptureState(stream.get());
  EXPECT_OK(state);
  return state.ok() ? *state : CaptureState::kNone;
}

// Things that the unsafe calls use. None of them takes part in a capture.
struct Bystanders {
  static Result<Bystanders> Create(CaseContext& context) {
    Bystanders all;
    KEEL_ASSIGN(all.stream, context.NewStream());
    KEEL_ASSIGN(all.event, context.NewEvent());
    KEEL_TRY(all.event.Record(all.stream.get()));
    KEEL_TRY(all.stream.Synchronize(InTime()));
    return all;
  }
  Stream stream;
  Event event;
};

// A call that is unsafe in a capture. Whatever it creates is given back in the relaxed mode, so
// that only the call itself can break anything.
struct Unsafe {
  Primitive primitive;
  std::function<Status(CaseContext&, Bystanders&)> call;
};

std::vector<Unsafe> UnsafeCalls(const Capabilities& can) {
  const auto in_relaxed = [](auto&& body) {
    const ScopedCaptureMode relaxed(CaptureMode::kRelaxed);
    return body();
  };
  std::vector<Unsafe> calls = {
      {Primitive::kAllocatePlain,
       [=](CaseContext& c, Bystanders&) -> Status {
         KEEL_ASSIGN(const DeviceAddress made, c.device().AllocatePlain(4_KiB));
         return in_relaxed([&] { return c.device().FreePlain(made); });
       }},
      {Primitive::kFreePlain,
       [=](CaseContext& c, Bystanders&) -> Status {
         KEEL_ASSIGN(const DeviceAddress made,
                     in_relaxed([&] { return c.device().AllocatePlain(4_KiB); }));
         Status status = c.device().FreePlain(made);
         // A refusal changed nothing: it can be freed now.
         if (!status.ok()) {
           EXPECT_OK(in_relaxed([&] { return c.device().FreePlain(made); }));
         }
         return status;
       }},
      {Primitive::kAllocateHost,
       [=](CaseContext& c, Bystanders&) -> Status {
         KEEL_ASSIGN(void* const made, c.device().AllocateHost(4_KiB, {}));
         return in_relaxed([&] { return c.device().FreeHost(made); });
       }},
      {Primitive::kFreeHost,
       [=](CaseContext& c, Bystanders&) -> Status {
         KEEL_ASSIGN(void* const made,
                     in_relaxed([&] { return c.device().AllocateHost(4_KiB, {}); }));
         Status status = c.device().FreeHost(made);
         if (!status.ok()) {
           EXPECT_OK(in_relaxed([&] { return c.device().FreeHost(made); }));
         }
         return status;
       }},
      {Primitive::kQueryStream,
       [](CaseContext& c, Bystanders& all) {
         return StatusOf(c.device().QueryStream(all.stream.get()));
       }},
      {Primitive::kSynchronizeStream,
       [](CaseContext& c, Bystanders& all) {
         return c.device().SynchronizeStream(all.stream.get(), InTime());
       }},
      {Primitive::kQueryEvent,
       [](CaseContext& c, Bystanders& all) {
         return StatusOf(c.device().QueryEvent(all.event.get()));
       }},
      {Primitive::kSynchronizeEvent,
       [](CaseContext& c, Bystanders& all) {
         return c.device().SynchronizeEvent(all.event.get(), InTime());
       }},
      {Primitive::kSynchronize,
       [](CaseContext& c, Bystanders&) { return c.device().Synchronize(InTime()); }},
      {Primitive::kInstantiate,
       [=](CaseContext& c, Bystanders&) -> Status {
         KEEL_ASSIGN(const Graph graph, Graph::Create(c.shared()));
         KEEL_ASSIGN(const ExecHandle made, c.device().Instantiate(graph.get()));
         return in_relaxed([&] { return c.device().DestroyExec(made); });
       }},
  };
  if (can.host_registration) {
    alignas(4096) static std::array<std::byte, 4096> page;
    calls.push_back({Primitive::kRegisterHost, [=](CaseContext& c, Bystanders&) -> Status {
                       KEEL_TRY(c.device().RegisterHost(page.data(), 4_KiB));
                       return in_relaxed([&] { return c.device().UnregisterHost(page.data()); });
                     }});
    calls.push_back(
        {Primitive::kUnregisterHost, [=](CaseContext& c, Bystanders&) -> Status {
           KEEL_TRY(in_relaxed([&] { return c.device().RegisterHost(page.data(), 4_KiB); }));
           Status status = c.device().UnregisterHost(page.data());
           if (!status.ok()) {
             EXPECT_OK(in_relaxed([&] { return c.device().UnregisterHost(page.data()); }));
           }
           return status;
         }});
  }
  return calls;
}

// Whether the end of a broken capture says which call broke it, where the driver knows.
testing::AssertionResult NamesCall(CaseContext& context, const Status& end, Primitive primitive) {
  if (!context.join().names_breaking_call ||
      end.message().find(PrimitiveName(primitive)) != std::string_view::npos) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure()
         << "no " << PrimitiveName(primitive) << " in: " << end.ToString();
}

// The rule of keel/hal/types.h.
bool Refused(CaptureMode capture, CaptureMode thread, bool own) {
  if (thread == CaptureMode::kRelaxed || capture == CaptureMode::kRelaxed) return false;
  if (own) return true;
  return capture == CaptureMode::kGlobal && thread == CaptureMode::kGlobal;
}

KEEL_CONFORMANCE_CASE(CaptureModes, UnsafeCallsFollowTheRule, .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream recording, context.NewStream());
  ASSERT_VALUE(Bystanders all, Bystanders::Create(context));
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  const Fill fill{.destination = memory.address(), .value = 1, .width = 4, .count = 16};
  for (const CaptureMode capture_mode : kModes) {
    for (const CaptureMode thread_mode : kModes) {
      for (const bool own : {true, false}) {
        for (const Unsafe& unsafe : UnsafeCalls(context.capabilities())) {
          SCOPED_TRACE(testing::Message()
                       << PrimitiveName(unsafe.primitive) << " in a " << Name(capture_mode)
                       << " capture, from " << (own ? "its own" : "another") << " thread in "
                       << Name(thread_mode) << " mode");
          ASSERT_OK(device.BeginCapture(recording.get(), capture_mode));
          ASSERT_OK(device.EnqueueFill(recording.get(), fill));
          Status status;
          const auto call = [&] {
            const ScopedCaptureMode mode(thread_mode);
            status = unsafe.call(context, all);
          };
          if (own) {
            call();
          } else {
            std::thread(call).join();
          }
          if (Refused(capture_mode, thread_mode, own)) {
            EXPECT_CODE(kFailedPrecondition, status);
            EXPECT_EQ(StateOf(context, recording), CaptureState::kInvalidated);
            // Only EndCapture helps now; and it says what happened.
            EXPECT_CODE(kFailedPrecondition, device.EnqueueFill(recording.get(), fill));
            const Status end = StatusOf(device.EndCapture(recording.get()));
            EXPECT_CODE(kFailedPrecondition, end);
            EXPECT_TRUE(NamesCall(context, end, unsafe.primitive));
          } else {
            EXPECT_OK(status);
            EXPECT_EQ(StateOf(context, recording), CaptureState::kActive);
            ASSERT_VALUE(const GraphHandle graph, device.EndCapture(recording.get()));
            ASSERT_VALUE(const std::vector<NodeInfo> nodes, device.GetNodes(graph));
            EXPECT_EQ(nodes.size(), 1u);
            EXPECT_OK(device.DestroyGraph(graph));
          }
          ASSERT_EQ(StateOf(context, recording), CaptureState::kNone);
        }
      }
    }
  }
  // The stream runs again.
  ASSERT_OK(device.EnqueueFill(recording.get(), fill));
  EXPECT_OK(recording.Synchronize(InTime()));
}

KEEL_CONFORMANCE_CASE(CaptureModes, AreTheThreadsOwnAndBeginRelaxed) {
  EXPECT_EQ(ThreadCaptureMode(), CaptureMode::kRelaxed);
  {
    const ScopedCaptureMode global(CaptureMode::kGlobal);
    EXPECT_EQ(ThreadCaptureMode(), CaptureMode::kGlobal);
    std::thread([] { EXPECT_EQ(ThreadCaptureMode(), CaptureMode::kRelaxed); }).join();
    EXPECT_TRUE(context.Works());
    EXPECT_EQ(ThreadCaptureMode(), CaptureMode::kGlobal);
  }
  EXPECT_EQ(ThreadCaptureMode(), CaptureMode::kRelaxed);
}

// A19: somebody else records, in the strictest mode, in any thread. Nothing that Keel does there
// may disturb it.
KEEL_CONFORMANCE_CASE(CaptureModes, NoCallOfARelaxedThreadBreaksACapture, .all_devices = true,
                      .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream recording, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  const Fill fill{.destination = memory.address(), .value = 1, .width = 4, .count = 16};
  for (const bool own : {true, false}) {
    SCOPED_TRACE(own ? "from the thread that records" : "from another thread");
    ASSERT_OK(device.BeginCapture(recording.get(), CaptureMode::kGlobal));
    ASSERT_OK(device.EnqueueFill(recording.get(), fill));
    const auto use = [&] { UseEveryPrimitive(context, Waiting::kAllowed); };
    if (own) {
      use();
    } else {
      std::thread(use).join();
    }
    ASSERT_OK(device.EnqueueFill(recording.get(), fill));
    EXPECT_EQ(StateOf(context, recording), CaptureState::kActive);
    ASSERT_VALUE(const GraphHandle graph, device.EndCapture(recording.get()));
    // Only what was put on the recording stream was recorded.
    ASSERT_VALUE(const std::vector<NodeInfo> nodes, device.GetNodes(graph));
    EXPECT_EQ(nodes.size(), 2u);
    EXPECT_OK(device.DestroyGraph(graph));
  }
}

// Virtual memory is legal even for a thread that obeys: an allocator may grow while it records.
KEEL_CONFORMANCE_CASE(CaptureModes, VirtualMemoryIsLegalInEveryCapture,
                      .needs = {&Capabilities::graphs, &Capabilities::virtual_memory}) {
  Device& device = context.device();
  const Bytes granule = context.granule();
  ASSERT_VALUE(const Stream recording, context.NewStream());
  for (const CaptureMode capture_mode : kModes) {
    for (const CaptureMode thread_mode : kModes) {
      SCOPED_TRACE(testing::Message() << Name(capture_mode) << ", " << Name(thread_mode));
      ASSERT_VALUE(Capture capture,
                   Capture::Begin(context.shared(), recording.get(), capture_mode));
      {
        const ScopedCaptureMode mode(thread_mode);
        EXPECT_OK(device.GetMemoryInfo());
        ASSERT_VALUE(MappedMemory memory, MappedMemory::Create(context.shared(), granule));
        EXPECT_OK(device.GetAccess(memory.address(), device.id()));
        // The new memory can be used by what is recorded.
        EXPECT_OK(device.EnqueueFill(
            recording.get(),
            {.destination = memory.address(), .value = 1, .width = 4, .count = 16}));
        EXPECT_OK(memory.Close());
        if (context.capabilities().exportable_memory) {
          ASSERT_VALUE(PhysicalMemory original,
                       PhysicalMemory::Create(context.shared(), granule, {.exportable = true}));
          ASSERT_VALUE(const UniqueFd descriptor, original.Export());
          ASSERT_VALUE(PhysicalMemory imported,
                       PhysicalMemory::Import(context.shared(), descriptor.get(), granule));
          EXPECT_OK(imported.Close());
          EXPECT_OK(original.Close());
        }
      }
      EXPECT_EQ(StateOf(context, recording), CaptureState::kActive);
      EXPECT_OK(capture.End());
    }
  }
}

// And so is everything else that device.h does not call unsafe.
KEEL_CONFORMANCE_CASE(CaptureModes, SafeCallsAreLegalForAnObeyingThread,
                      .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  const Capabilities& can = context.capabilities();
  ASSERT_VALUE(const Stream recording, context.NewStream());
  ASSERT_VALUE(const Stream other, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_VALUE(const HostMemory pinned, HostMemory::Create(context.shared(), 4_KiB));
  ASSERT_VALUE(const PlainMemory value, context.NewPlain(8_B));
  ASSERT_VALUE(const Graph launched, Graph::Create(context.shared()));
  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(launched));
  ASSERT_VALUE(Capture capture,
               Capture::Begin(context.shared(), recording.get(), CaptureMode::kGlobal));
  {
    const ScopedCaptureMode obeying(CaptureMode::kGlobal);
    EXPECT_OK(device.GetMemoryInfo());
    EXPECT_OK(device.GetHostAddress(pinned.data()));
    EXPECT_OK(device.CanAccessPeer(device.id()));
    ASSERT_VALUE(Stream created, context.NewStream());
    ASSERT_VALUE(Event event, context.NewEvent());
    EXPECT_OK(event.Record(other.get()));
    EXPECT_OK(device.WaitEvent(created.get(), event.get()));
    EXPECT_OK(device.EnqueueFill(
        other.get(), {.destination = memory.address(), .value = 1, .width = 4, .count = 16}));
    EXPECT_OK(
        device.EnqueueCopy(other.get(), {.destination = Location::Host(pinned.data()),
                                         .source = Location::On(device.id(), memory.address()),
                                         .size = 64_B}));
    if (can.value_writes) {
      EXPECT_OK(device.WriteValue(other.get(), {.destination = value.address(), .value = 3}));
    }
    if (can.host_calls) {
      EXPECT_OK(device.CallHost(other.get(), {.function = [](void*) {}}));
    }
    ASSERT_VALUE(Graph graph, Graph::Create(context.shared()));
    EXPECT_OK(device.AddNode(graph.get(), {}, EmptyNode{}));
    EXPECT_OK(exec.Launch(other.get()));
    EXPECT_OK(graph.Close());
    EXPECT_OK(event.Close());
    EXPECT_OK(created.Close());
    EXPECT_EQ(StateOf(context, recording), CaptureState::kActive);
  }
  EXPECT_OK(capture.End());
  EXPECT_OK(other.Synchronize(InTime()));
}

// Whatever the mode, a call that contradicts the capture of its own argument breaks that capture.
KEEL_CONFORMANCE_CASE(CaptureModes, CallsOnTheCapturingStreamBreakIt,
                      .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream recording, context.NewStream());
  ASSERT_VALUE(const Event captured, context.NewEvent());
  struct Call {
    Primitive primitive;
    std::function<Status()> call;
  };
  const std::array<Call, 4> calls = {{
      {Primitive::kQueryStream, [&] { return StatusOf(device.QueryStream(recording.get())); }},
      {Primitive::kSynchronizeStream,
       [&] { return device.SynchronizeStream(recording.get(), InTime()); }},
      {Primitive::kQueryEvent, [&] { return StatusOf(device.QueryEvent(captured.get())); }},
      {Primitive::kSynchronizeEvent,
       [&] { return device.SynchronizeEvent(captured.get(), InTime()); }},
  }};
  for (const CaptureMode capture_mode : kModes) {
    for (const CaptureMode thread_mode : kModes) {
      for (const bool own : {true, false}) {
        for (const Call& contradicting : calls) {
          SCOPED_TRACE(testing::Message()
                       << PrimitiveName(contradicting.primitive) << " in a " << Name(capture_mode)
                       << " capture, from " << (own ? "its own" : "another") << " thread in "
                       << Name(thread_mode) << " mode");
          ASSERT_OK(device.BeginCapture(recording.get(), capture_mode));
          ASSERT_OK(captured.Record(recording.get()));
          Status status;
          const auto call = [&] {
            const ScopedCaptureMode mode(thread_mode);
            status = contradicting.call();
          };
          if (own) {
            call();
          } else {
            std::thread(call).join();
          }
          EXPECT_CODE(kFailedPrecondition, status);
          EXPECT_EQ(StateOf(context, recording), CaptureState::kInvalidated);
          const Status end = StatusOf(device.EndCapture(recording.get()));
          EXPECT_CODE(kFailedPrecondition, end);
          EXPECT_TRUE(NamesCall(context, end, contradicting.primitive));
          ASSERT_EQ(StateOf(context, recording), CaptureState::kNone);
        }
      }
    }
  }
  // An event that a broken capture recorded is of use again when it is recorded again.
  ASSERT_OK(captured.Record(recording.get()));
  EXPECT_OK(captured.Synchronize(InTime()));
}

// A stream that synchronises with the legacy default stream captures: what is asked of that one is
// answered or refused, and the capture does not notice.
KEEL_CONFORMANCE_CASE(CaptureModes, TheLegacyStreamBreaksNothing,
                      .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const StreamHandle legacy, device.GetDefaultStream(DefaultStream::kLegacy));
  ASSERT_VALUE(const StreamHandle recording, device.GetDefaultStream(DefaultStream::kPerThread));
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  const Fill fill{.destination = memory.address(), .value = 5, .width = 4, .count = 16};
  for (const CaptureMode mode :
       {CaptureMode::kGlobal, CaptureMode::kThreadLocal, CaptureMode::kRelaxed}) {
    ASSERT_VALUE(Capture capture, Capture::Begin(context.shared(), recording, mode));
    for (const Status& status :
         {StatusOf(device.QueryStream(legacy)), device.SynchronizeStream(legacy, InTime()),
          device.Synchronize(InTime()), device.EnqueueFill(legacy, fill)}) {
      if (!status.ok()) {
        EXPECT_CODE(kFailedPrecondition, status);
      }
    }
    ASSERT_OK(device.EnqueueFill(recording, fill));
    ASSERT_VALUE(const CaptureState state, device.GetCaptureState(recording));
    EXPECT_EQ(state, CaptureState::kActive);
    EXPECT_OK(capture.End());
  }
  EXPECT_OK(device.Synchronize(InTime()));
}

KEEL_CONFORMANCE_CASE(CaptureModes, OnlyTheNamedCaptureBreaks, .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream first, context.NewStream());
  ASSERT_VALUE(const Stream second, context.NewStream());
  ASSERT_OK(device.BeginCapture(first.get(), CaptureMode::kGlobal));
  ASSERT_OK(device.BeginCapture(second.get(), CaptureMode::kThreadLocal));
  EXPECT_CODE(kFailedPrecondition, device.QueryStream(first.get()));
  EXPECT_EQ(StateOf(context, first), CaptureState::kInvalidated);
  EXPECT_EQ(StateOf(context, second), CaptureState::kActive);
  EXPECT_CODE(kFailedPrecondition, device.EndCapture(first.get()));
  ASSERT_VALUE(const GraphHandle graph, device.EndCapture(second.get()));
  EXPECT_OK(device.DestroyGraph(graph));
}

KEEL_CONFORMANCE_CASE(CaptureModes, ABrokenCaptureBreaksForAllItsStreams,
                      .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream origin, context.NewStream());
  ASSERT_VALUE(const Stream branch, context.NewStream());
  ASSERT_VALUE(const Event fork, context.NewEvent());
  ASSERT_OK(device.BeginCapture(origin.get(), CaptureMode::kRelaxed));
  ASSERT_OK(fork.Record(origin.get()));
  ASSERT_OK(device.WaitEvent(branch.get(), fork.get()));
  EXPECT_CODE(kFailedPrecondition, device.QueryStream(branch.get()));
  EXPECT_EQ(StateOf(context, branch), CaptureState::kInvalidated);
  EXPECT_EQ(StateOf(context, origin), CaptureState::kInvalidated);
  EXPECT_CODE(kFailedPrecondition, device.EndCapture(origin.get()));
  EXPECT_EQ(StateOf(context, branch), CaptureState::kNone);
  for (const Stream* stream : {&origin, &branch}) EXPECT_OK(stream->Synchronize(InTime()));
}

}  // namespace
}  // namespace keel::hal::conformance
