// Waiting on the host: bounded, exact about what is done, and without burning a core.

#include <sys/resource.h>
#include <time.h>

#include <chrono>
#include <functional>
#include <thread>

#include "hal/conformance/context.h"

namespace keel::hal::conformance {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

milliseconds Clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return duration_cast<milliseconds>(std::chrono::seconds(now.tv_sec) +
                                     std::chrono::nanoseconds(now.tv_nsec));
}

// The three waits, on something that `stream` holds up.
struct NamedWait {
  const char* name;
  std::function<Status(Deadline)> wait;
};
std::vector<NamedWait> WaitsOn(CaseContext& context, const Stream& stream, const Event& event) {
  Device& device = context.device();
  return {
      {"SynchronizeStream", [&device, handle = stream.get()](
                                Deadline d) { return device.SynchronizeStream(handle, d); }},
      {"SynchronizeEvent",
       [&device, handle = event.get()](Deadline d) { return device.SynchronizeEvent(handle, d); }},
      {"Synchronize", [&device](Deadline d) { return device.Synchronize(d); }},
  };
}

KEEL_CONFORMANCE_CASE(Waits, EndAtTheDeadlineAndTheWorkGoesOn, .blocks = true) {
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const Event event, context.NewEvent());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_OK(context.Write(memory.address(), std::vector<std::uint32_t>(1024, 0)));
  ASSERT_VALUE(Blocker blocker, context.Block(stream.get()));
  ASSERT_OK(context.device().EnqueueFill(
      stream.get(), {.destination = memory.address(), .value = 2, .width = 4, .count = 1024}));
  ASSERT_OK(event.Record(stream.get()));
  for (const NamedWait& wait : WaitsOn(context, stream, event)) {
    SCOPED_TRACE(wait.name);
    const auto start = steady_clock::now();
    EXPECT_CODE(kDeadlineExceeded, wait.wait(Deadline::After(milliseconds(50))));
    const auto took = steady_clock::now() - start;
    EXPECT_GE(took, milliseconds(50));
    EXPECT_LT(took, std::chrono::seconds(5));
    // Those that are over when the call is made look once.
    EXPECT_CODE(kDeadlineExceeded, wait.wait(Deadline::Now()));
    EXPECT_CODE(kDeadlineExceeded, wait.wait(Deadline::At(start)));
  }
  EXPECT_TRUE(blocker.blocked());
  blocker.Release();
  for (const NamedWait& wait : WaitsOn(context, stream, event)) {
    SCOPED_TRACE(wait.name);
    EXPECT_OK(wait.wait(InTime()));
    // Done: a deadline that has passed does not make it undone.
    EXPECT_OK(wait.wait(Deadline::Now()));
  }
  EXPECT_TRUE(context.HoldsWord(memory.address(), 1024, 2));
}

KEEL_CONFORMANCE_CASE(Waits, WithoutDeadlineEndWithTheWork, .blocks = true) {
  ASSERT_VALUE(const Stream stream, context.NewStream());
  for (int which = 0; which < 3; ++which) {
    ASSERT_VALUE(const Event event, context.NewEvent());
    ASSERT_VALUE(Blocker blocker, context.Block(stream.get()));
    ASSERT_OK(event.Record(stream.get()));
    blocker.ReleaseAfter(milliseconds(30));
    const NamedWait wait = WaitsOn(context, stream, event)[static_cast<std::size_t>(which)];
    SCOPED_TRACE(wait.name);
    EXPECT_OK(wait.wait(Deadline::Never()));
    EXPECT_FALSE(blocker.blocked());
  }
}

KEEL_CONFORMANCE_CASE(Waits, DoNotBurnACore, .blocks = true) {
  constexpr milliseconds kTime(200);
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const Event event, context.NewEvent());
  ASSERT_VALUE(Blocker blocker, context.Block(stream.get()));
  ASSERT_OK(event.Record(stream.get()));
  // What the process spends anyway while the stream is busy: its work may run on host threads.
  const milliseconds idle_start = Clock(CLOCK_PROCESS_CPUTIME_ID);
  std::this_thread::sleep_for(kTime);
  const milliseconds idle = Clock(CLOCK_PROCESS_CPUTIME_ID) - idle_start;
  for (const NamedWait& wait : WaitsOn(context, stream, event)) {
    SCOPED_TRACE(wait.name);
    const milliseconds thread_start = Clock(CLOCK_THREAD_CPUTIME_ID);
    const milliseconds process_start = Clock(CLOCK_PROCESS_CPUTIME_ID);
    EXPECT_CODE(kDeadlineExceeded, wait.wait(Deadline::After(kTime)));
    EXPECT_LT(Clock(CLOCK_THREAD_CPUTIME_ID) - thread_start, kTime / 4);
    EXPECT_LT(Clock(CLOCK_PROCESS_CPUTIME_ID) - process_start, idle + kTime / 2);
  }
  EXPECT_TRUE(blocker.blocked());
}

KEEL_CONFORMANCE_CASE(Waits, CoverEveryStreamOfTheDevice, .blocks = true) {
  Device& device = context.device();
  std::vector<StreamHandle> handles;
  ASSERT_VALUE(const Stream created, context.NewStream());
  handles.push_back(created.get());
  for (const DefaultStream which : {DefaultStream::kLegacy, DefaultStream::kPerThread}) {
    ASSERT_VALUE(const StreamHandle stream, device.GetDefaultStream(which));
    handles.push_back(stream);
  }
  for (const StreamHandle stream : handles) {
    ASSERT_VALUE(Blocker blocker, context.Block(stream));
    EXPECT_CODE(kDeadlineExceeded, device.Synchronize(Deadline::After(milliseconds(10))));
    blocker.Release();
    EXPECT_OK(device.Synchronize(InTime()));
  }
}

KEEL_CONFORMANCE_CASE(Waits, CoverStreamsThatWereDestroyed, .blocks = true) {
  Device& device = context.device();
  ASSERT_VALUE(const StreamHandle stream, device.CreateStream({}));
  ASSERT_VALUE(Blocker blocker, context.Block(stream));
  ASSERT_OK(device.DestroyStream(stream));
  EXPECT_CODE(kDeadlineExceeded, device.Synchronize(Deadline::After(milliseconds(10))));
  blocker.Release();
  EXPECT_OK(device.Synchronize(InTime()));
}

KEEL_CONFORMANCE_CASE(Waits, OfOneDeviceIgnoreTheOther, .devices = 2, .blocks = true) {
  ASSERT_VALUE(const Stream stream, context.NewStream(0));
  ASSERT_VALUE(Blocker blocker, context.Block(stream.get(), 0));
  EXPECT_OK(context.device(1).Synchronize(InTime()));
  EXPECT_TRUE(blocker.blocked());
}

KEEL_CONFORMANCE_CASE(Waits, ManyThreadsWaitForOneThing, .blocks = true) {
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const Event event, context.NewEvent());
  ASSERT_VALUE(Blocker blocker, context.Block(stream.get()));
  ASSERT_OK(event.Record(stream.get()));
  const std::vector<NamedWait> waits = WaitsOn(context, stream, event);
  std::vector<std::thread> threads;
  for (int i = 0; i < 9; ++i) {
    threads.emplace_back([&, i] {
      EXPECT_OK(waits[static_cast<std::size_t>(i % 3)].wait(InTime()));
      EXPECT_FALSE(blocker.blocked());
    });
  }
  blocker.ReleaseAfter(milliseconds(30));
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace keel::hal::conformance
