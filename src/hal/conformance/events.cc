// Events: what they stand for, who waits for them, and time.

#include <chrono>
#include <thread>

#include "hal/conformance/context.h"

namespace keel::hal::conformance {
namespace {

using std::chrono::steady_clock;

Completion QueryOr(const Event& event, Completion otherwise) {
  const Result<Completion> result = event.Query();
  EXPECT_OK(result);
  return result.ok() ? *result : otherwise;
}

KEEL_CONFORMANCE_CASE(Events, NeverRecordedIsDone) {
  Device& device = context.device();
  ASSERT_VALUE(const Event event, context.NewEvent());
  EXPECT_EQ(QueryOr(event, Completion::kPending), Completion::kDone);
  EXPECT_OK(event.Synchronize(Deadline::Now()));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  EXPECT_OK(device.WaitEvent(stream.get(), event.get()));
  EXPECT_OK(stream.Synchronize(InTime()));
}

KEEL_CONFORMANCE_CASE(Events, StandForWhatWasQueuedBefore, .blocks = true) {
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const Event before, context.NewEvent());
  ASSERT_VALUE(const Event after, context.NewEvent());
  ASSERT_OK(before.Record(stream.get()));
  ASSERT_VALUE(Blocker blocker, context.Block(stream.get()));
  ASSERT_OK(after.Record(stream.get()));
  EXPECT_OK(before.Synchronize(InTime()));
  EXPECT_EQ(QueryOr(before, Completion::kPending), Completion::kDone);
  EXPECT_EQ(QueryOr(after, Completion::kDone), Completion::kPending);
  EXPECT_TRUE(blocker.blocked());
  blocker.Release();
  EXPECT_OK(after.Synchronize(InTime()));
  EXPECT_EQ(QueryOr(after, Completion::kPending), Completion::kDone);
}

KEEL_CONFORMANCE_CASE(Events, RecordingAgainReplaces, .blocks = true) {
  ASSERT_VALUE(const Stream held, context.NewStream());
  ASSERT_VALUE(const Stream free, context.NewStream());
  ASSERT_VALUE(const Event event, context.NewEvent());
  ASSERT_VALUE(Blocker blocker, context.Block(held.get()));
  ASSERT_OK(event.Record(held.get()));
  EXPECT_EQ(QueryOr(event, Completion::kDone), Completion::kPending);
  ASSERT_OK(event.Record(free.get()));
  EXPECT_OK(event.Synchronize(InTime()));
  EXPECT_TRUE(blocker.blocked());
  // And the other way round: done becomes pending.
  ASSERT_OK(event.Record(held.get()));
  EXPECT_EQ(QueryOr(event, Completion::kDone), Completion::kPending);
}

KEEL_CONFORMANCE_CASE(Events, OrderTwoStreams, .blocks = true) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream first, context.NewStream());
  ASSERT_VALUE(const Stream second, context.NewStream());
  ASSERT_VALUE(const Event event, context.NewEvent());
  ASSERT_VALUE(const PlainMemory a, context.NewPlain(64_KiB));
  ASSERT_VALUE(const PlainMemory b, context.NewPlain(64_KiB));
  ASSERT_OK(context.Write(a.address(), std::vector<std::uint32_t>(16384, 0)));
  ASSERT_VALUE(Blocker blocker, context.Block(first.get()));
  ASSERT_OK(device.EnqueueFill(
      first.get(), {.destination = a.address(), .value = 8, .width = 4, .count = 16384}));
  ASSERT_OK(event.Record(first.get()));
  ASSERT_OK(device.WaitEvent(second.get(), event.get()));
  ASSERT_OK(device.EnqueueCopy(second.get(), {.destination = Location::On(device.id(), b.address()),
                                              .source = Location::On(device.id(), a.address()),
                                              .size = 64_KiB}));
  ASSERT_VALUE(const Completion waiting, second.Query());
  EXPECT_EQ(waiting, Completion::kPending);
  blocker.Release();
  ASSERT_OK(second.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsWord(b.address(), 16384, 8));
}

KEEL_CONFORMANCE_CASE(Events, WorkBeforeTheWaitDoesNotWait, .blocks = true) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream held, context.NewStream());
  ASSERT_VALUE(const Stream waiting, context.NewStream());
  ASSERT_VALUE(const Event event, context.NewEvent());
  ASSERT_VALUE(const Event reached, context.NewEvent());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_VALUE(Blocker blocker, context.Block(held.get()));
  ASSERT_OK(event.Record(held.get()));
  ASSERT_OK(device.EnqueueFill(
      waiting.get(), {.destination = memory.address(), .value = 2, .width = 4, .count = 1024}));
  ASSERT_OK(reached.Record(waiting.get()));
  ASSERT_OK(device.WaitEvent(waiting.get(), event.get()));
  EXPECT_OK(reached.Synchronize(InTime()));
  EXPECT_TRUE(blocker.blocked());
  EXPECT_TRUE(context.HoldsWord(memory.address(), 1024, 2));
}

KEEL_CONFORMANCE_CASE(Events, WhoWaitsKeepsWaitingForWhatItWas, .blocks = true) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream held, context.NewStream());
  ASSERT_VALUE(const Stream waiting, context.NewStream());
  ASSERT_VALUE(const Stream free, context.NewStream());
  ASSERT_VALUE(const Event event, context.NewEvent());
  ASSERT_VALUE(Blocker blocker, context.Block(held.get()));
  ASSERT_OK(event.Record(held.get()));
  ASSERT_OK(device.WaitEvent(waiting.get(), event.get()));
  ASSERT_OK(event.Record(free.get()));
  ASSERT_OK(event.Synchronize(InTime()));
  // The event is done now, and the stream still waits for the older recording.
  EXPECT_CODE(kDeadlineExceeded,
              waiting.Synchronize(Deadline::After(std::chrono::milliseconds(20))));
  EXPECT_TRUE(blocker.blocked());
  blocker.Release();
  EXPECT_OK(waiting.Synchronize(InTime()));
}

KEEL_CONFORMANCE_CASE(Events, AWaitTakesWhatTheEventStandsForThen, .blocks = true) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream held, context.NewStream());
  ASSERT_VALUE(const Stream waiting, context.NewStream());
  ASSERT_VALUE(const Event event, context.NewEvent());
  // Not recorded when the wait is queued: a later recording does not hold the stream up.
  ASSERT_OK(device.WaitEvent(waiting.get(), event.get()));
  ASSERT_VALUE(Blocker blocker, context.Block(held.get()));
  ASSERT_OK(event.Record(held.get()));
  EXPECT_OK(waiting.Synchronize(InTime()));
  EXPECT_TRUE(blocker.blocked());
}

KEEL_CONFORMANCE_CASE(Events, DestroyedOnesAreStillWaitedFor, .blocks = true) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream held, context.NewStream());
  ASSERT_VALUE(const Stream waiting, context.NewStream());
  ASSERT_VALUE(const EventHandle event, device.CreateEvent({}));
  ASSERT_VALUE(Blocker blocker, context.Block(held.get()));
  ASSERT_OK(device.RecordEvent(event, held.get()));
  ASSERT_OK(device.WaitEvent(waiting.get(), event));
  ASSERT_OK(device.DestroyEvent(event));
  EXPECT_TRUE(blocker.blocked()) << "destroying waited";
  EXPECT_CODE(kDeadlineExceeded,
              waiting.Synchronize(Deadline::After(std::chrono::milliseconds(20))));
  blocker.Release();
  EXPECT_OK(waiting.Synchronize(InTime()));
}

KEEL_CONFORMANCE_CASE(Events, JoinManyStreams, .blocks = true) {
  constexpr std::uint32_t kStreams = 8;
  Device& device = context.device();
  ASSERT_VALUE(const Stream root, context.NewStream());
  ASSERT_VALUE(const Event start, context.NewEvent());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(Bytes(kStreams * 4)));
  ASSERT_VALUE(const PlainMemory copy, context.NewPlain(Bytes(kStreams * 4)));
  ASSERT_OK(context.Write(memory.address(), std::vector<std::uint32_t>(kStreams, 0)));
  {
    ASSERT_VALUE(Blocker blocker, context.Block(root.get()));
    ASSERT_OK(start.Record(root.get()));
    std::vector<Stream> branches;
    for (std::uint32_t i = 0; i < kStreams; ++i) {
      ASSERT_VALUE(Stream branch, context.NewStream());
      ASSERT_VALUE(const Event end, context.NewEvent());
      ASSERT_OK(device.WaitEvent(branch.get(), start.get()));
      ASSERT_OK(device.EnqueueFill(branch.get(), {.destination = memory.address() + Bytes(i * 4),
                                                  .value = i + 1,
                                                  .width = 4,
                                                  .count = 1}));
      ASSERT_OK(end.Record(branch.get()));
      ASSERT_OK(device.WaitEvent(root.get(), end.get()));
      branches.push_back(std::move(branch));
    }
    ASSERT_OK(
        device.EnqueueCopy(root.get(), {.destination = Location::On(device.id(), copy.address()),
                                        .source = Location::On(device.id(), memory.address()),
                                        .size = Bytes(kStreams * 4)}));
  }
  ASSERT_OK(root.Synchronize(InTime()));
  ASSERT_VALUE(const std::vector<std::uint32_t> seen,
               context.Read<std::uint32_t>(copy.address(), kStreams));
  for (std::uint32_t i = 0; i < kStreams; ++i) EXPECT_EQ(seen[i], i + 1);
}

KEEL_CONFORMANCE_CASE(Events, OrderTwoDevices, .devices = 2, .blocks = true) {
  Device& first = context.device(0);
  Device& second = context.device(1);
  ASSERT_VALUE(const Stream on_first, context.NewStream(0));
  ASSERT_VALUE(const Stream on_second, context.NewStream(1));
  ASSERT_VALUE(const Event event, context.NewEvent(0));
  ASSERT_VALUE(const PlainMemory a, context.NewPlain(64_KiB, 0));
  ASSERT_VALUE(const PlainMemory b, context.NewPlain(64_KiB, 1));
  ASSERT_OK(context.Write(a.address(), std::vector<std::uint32_t>(16384, 0), 0));
  ASSERT_VALUE(Blocker blocker, context.Block(on_first.get(), 0));
  ASSERT_OK(first.EnqueueFill(
      on_first.get(), {.destination = a.address(), .value = 11, .width = 4, .count = 16384}));
  ASSERT_OK(event.Record(on_first.get()));
  ASSERT_OK(second.WaitEvent(on_second.get(), event.get()));
  ASSERT_OK(
      second.EnqueueCopy(on_second.get(), {.destination = Location::On(second.id(), b.address()),
                                           .source = Location::On(first.id(), a.address()),
                                           .size = 64_KiB}));
  EXPECT_CODE(kDeadlineExceeded,
              on_second.Synchronize(Deadline::After(std::chrono::milliseconds(20))));
  blocker.Release();
  ASSERT_OK(on_second.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsWord(b.address(), 16384, 11, 1));
}

KEEL_CONFORMANCE_CASE(Events, AreRecordedOnTheirOwnDevice, .devices = 2) {
  ASSERT_VALUE(const Stream other, context.NewStream(1));
  ASSERT_VALUE(const Event event, context.NewEvent(0));
  EXPECT_CODE(kInvalidArgument, context.device(0).RecordEvent(event.get(), other.get()));
  EXPECT_CODE(kInvalidArgument, context.device(1).RecordEvent(event.get(), other.get()));
  EXPECT_EQ(QueryOr(event, Completion::kPending), Completion::kDone);
}

KEEL_CONFORMANCE_CASE(Events, CanBeRecordedOnDefaultStreams, .blocks = true) {
  Device& device = context.device();
  for (const DefaultStream which : {DefaultStream::kLegacy, DefaultStream::kPerThread}) {
    ASSERT_VALUE(const StreamHandle stream, device.GetDefaultStream(which));
    ASSERT_VALUE(const Event event, context.NewEvent());
    ASSERT_VALUE(Blocker blocker, context.Block(stream));
    ASSERT_OK(event.Record(stream));
    EXPECT_EQ(QueryOr(event, Completion::kDone), Completion::kPending);
    blocker.Release();
    EXPECT_OK(event.Synchronize(InTime()));
  }
}

KEEL_CONFORMANCE_CASE(Events, ManyAtOnce) {
  ASSERT_VALUE(const Stream stream, context.NewStream());
  std::vector<Event> events;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_VALUE(Event event, context.NewEvent());
    ASSERT_OK(event.Record(stream.get()));
    events.push_back(std::move(event));
  }
  ASSERT_OK(stream.Synchronize(InTime()));
  for (const Event& event : events) {
    EXPECT_EQ(QueryOr(event, Completion::kPending), Completion::kDone);
  }
}

KEEL_CONFORMANCE_CASE(Events, AreSeenByOtherThreads, .blocks = true) {
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const Event event, context.NewEvent());
  ASSERT_VALUE(Blocker blocker, context.Block(stream.get()));
  std::thread([&] { EXPECT_OK(event.Record(stream.get())); }).join();
  EXPECT_EQ(QueryOr(event, Completion::kDone), Completion::kPending);
  std::thread waiter([&] { EXPECT_OK(event.Synchronize(InTime())); });
  blocker.Release();
  waiter.join();
}

KEEL_CONFORMANCE_CASE(Events, ElapsedTimeIsRight, .needs = {&Capabilities::event_timing},
                      .blocks = true) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const Event start, Event::Create(context.shared(), {.timing = true}));
  ASSERT_VALUE(const Event end, Event::Create(context.shared(), {.timing = true}));
  const auto outer_start = steady_clock::now();
  ASSERT_OK(start.Record(stream.get()));
  ASSERT_OK(start.Synchronize(InTime()));
  const auto inner_start = steady_clock::now();
  ASSERT_VALUE(Blocker blocker, context.Block(stream.get()));
  ASSERT_OK(end.Record(stream.get()));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  const auto inner_end = steady_clock::now();
  blocker.Release();
  ASSERT_OK(end.Synchronize(InTime()));
  const auto outer_end = steady_clock::now();
  ASSERT_VALUE(const double elapsed, device.ElapsedMilliseconds(start.get(), end.get()));
  // The device's clock is not the host's: a small difference of pace is allowed.
  const std::chrono::duration<double, std::milli> inner = inner_end - inner_start;
  const std::chrono::duration<double, std::milli> outer = outer_end - outer_start;
  EXPECT_GE(elapsed, inner.count() * 0.98 - 0.1);
  EXPECT_LE(elapsed, outer.count() * 1.02 + 0.1);
  ASSERT_VALUE(const double none, device.ElapsedMilliseconds(start.get(), start.get()));
  EXPECT_EQ(none, 0.0);
}

KEEL_CONFORMANCE_CASE(Events, ElapsedTimeNeedsTwoDoneTimingEvents,
                      .needs = {&Capabilities::event_timing}, .blocks = true) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const Event timed, Event::Create(context.shared(), {.timing = true}));
  ASSERT_VALUE(const Event fresh, Event::Create(context.shared(), {.timing = true}));
  ASSERT_VALUE(const Event plain, context.NewEvent());
  ASSERT_OK(timed.Record(stream.get()));
  ASSERT_OK(plain.Record(stream.get()));
  ASSERT_OK(stream.Synchronize(InTime()));
  const auto elapsed = [&](const Event& a, const Event& b) {
    return StatusOf(device.ElapsedMilliseconds(a.get(), b.get()));
  };
  EXPECT_CODE(kFailedPrecondition, elapsed(timed, plain));
  EXPECT_CODE(kFailedPrecondition, elapsed(plain, timed));
  EXPECT_CODE(kFailedPrecondition, elapsed(timed, fresh));
  EXPECT_CODE(kFailedPrecondition, elapsed(fresh, timed));
  {
    ASSERT_VALUE(Blocker blocker, context.Block(stream.get()));
    ASSERT_OK(fresh.Record(stream.get()));
    EXPECT_CODE(kFailedPrecondition, elapsed(timed, fresh));
    EXPECT_CODE(kFailedPrecondition, elapsed(fresh, timed));
  }
  ASSERT_OK(stream.Synchronize(InTime()));
  EXPECT_OK(elapsed(timed, fresh));
}

}  // namespace
}  // namespace keel::hal::conformance
