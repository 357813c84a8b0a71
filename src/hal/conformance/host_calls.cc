// Functions that run on a host thread in stream order.

#include <atomic>
#include <thread>

#include "hal/conformance/context.h"
#include "hal/conformance/props.h"

namespace keel::hal::conformance {
namespace {

// Appends to a list: only ever one call at a time in a stream, and the stream is synchronised
// before the list is read.
struct Note {
  std::vector<int>* list;
  int value;
};
void TakeNote(void* data) {
  const Note* note = static_cast<const Note*>(data);
  note->list->push_back(note->value);
}

void CountUp(void* data) { static_cast<std::atomic<int>*>(data)->fetch_add(1); }

KEEL_CONFORMANCE_CASE(HostCalls, RunInOrder, .needs = {&Capabilities::host_calls}) {
  constexpr int kCalls = 100;
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  std::vector<int> list;
  std::vector<Note> notes;
  notes.reserve(kCalls);
  for (int i = 0; i < kCalls; ++i) {
    notes.push_back({&list, i});
    ASSERT_OK(device.CallHost(stream.get(), {.function = &TakeNote, .data = &notes.back()}));
  }
  ASSERT_OK(stream.Synchronize(InTime()));
  ASSERT_EQ(list.size(), static_cast<std::size_t>(kCalls));
  for (int i = 0; i < kCalls; ++i) EXPECT_EQ(list[static_cast<std::size_t>(i)], i);
}

KEEL_CONFORMANCE_CASE(HostCalls, RunAfterTheWorkBeforeAndBeforeTheWorkBehind,
                      .needs = {&Capabilities::host_calls}, .blocks = true) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PinnedWords words, context.NewWords(2));
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(8_B));
  ASSERT_OK(context.Write<std::uint64_t>(memory.address(), {41}));
  const auto copy = [&](std::uint64_t* to) {
    return device.EnqueueCopy(stream.get(), {.destination = Location::Host(to),
                                             .source = Location::On(device.id(), memory.address()),
                                             .size = 8_B});
  };
  struct Look {
    const PinnedWords* words;
    std::uint64_t before = 0;
    std::uint64_t behind = 1;
  } look{&words};
  ASSERT_VALUE(Blocker blocker, context.Block(stream.get()));
  ASSERT_OK(copy(words.data()));
  ASSERT_OK(device.CallHost(stream.get(), {.function =
                                               [](void* data) {
                                                 auto* seen = static_cast<Look*>(data);
                                                 seen->before = seen->words->Load(0);
                                                 seen->behind = seen->words->Load(1);
                                               },
                                           .data = &look}));
  ASSERT_OK(copy(words.data() + 1));
  EXPECT_TRUE(blocker.blocked());
  blocker.Release();
  ASSERT_OK(stream.Synchronize(InTime()));
  EXPECT_EQ(look.before, 41u);
  EXPECT_EQ(look.behind, 0u);
  EXPECT_EQ(words.Load(1), 41u);
}

KEEL_CONFORMANCE_CASE(HostCalls, HoldTheirStreamUntilTheyReturn,
                      .needs = {&Capabilities::host_calls}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  std::atomic<bool> go{false};
  ASSERT_OK(device.CallHost(stream.get(), {.function =
                                               [](void* data) {
                                                 auto* flag = static_cast<std::atomic<bool>*>(data);
                                                 flag->wait(false);
                                               },
                                           .data = &go}));
  EXPECT_CODE(kDeadlineExceeded,
              stream.Synchronize(Deadline::After(std::chrono::milliseconds(20))));
  go.store(true);
  go.notify_all();
  EXPECT_OK(stream.Synchronize(InTime()));
}

KEEL_CONFORMANCE_CASE(HostCalls, RunOnceEach, .all_devices = true,
                      .needs = {&Capabilities::host_calls}) {
  std::atomic<int> count{0};
  std::vector<Stream> streams;
  for (int i = 0; i < context.device_count(); ++i) {
    for (int s = 0; s < 3; ++s) {
      ASSERT_VALUE(Stream stream, context.NewStream(i));
      for (int call = 0; call < 50; ++call) {
        ASSERT_OK(context.device(i).CallHost(stream.get(), {.function = &CountUp, .data = &count}));
      }
      streams.push_back(std::move(stream));
    }
  }
  for (const Stream& stream : streams) EXPECT_OK(stream.Synchronize(InTime()));
  EXPECT_EQ(count.load(), context.device_count() * 3 * 50);
}

KEEL_CONFORMANCE_CASE(HostCalls, OfNoFunctionAreRefused, .needs = {&Capabilities::host_calls}) {
  ASSERT_VALUE(const Stream stream, context.NewStream());
  std::atomic<int> count{0};
  EXPECT_CODE(kInvalidArgument, context.device().CallHost(stream.get(), {}));
  EXPECT_CODE(kInvalidArgument,
              context.device().CallHost(StreamHandle{}, {.function = &CountUp, .data = &count}));
  // Data may be null.
  EXPECT_OK(context.device().CallHost(stream.get(), {.function = [](void*) {}}));
  EXPECT_OK(stream.Synchronize(InTime()));
  EXPECT_EQ(count.load(), 0);
}

struct Attempt {
  Device* device;
  const Props* props;
  std::vector<std::pair<Primitive, Status>> outcomes;
};

void TryEveryPrimitive(void* data) {
  auto* attempt = static_cast<Attempt*>(data);
  for (const PrimitiveCall& primitive : AllPrimitives()) {
    attempt->outcomes.emplace_back(primitive.primitive,
                                   primitive.call(*attempt->device, *attempt->props));
  }
}

void ExpectAllRefused(const Attempt& attempt) {
  EXPECT_EQ(attempt.outcomes.size(), AllPrimitives().size());
  for (const auto& [primitive, status] : attempt.outcomes) {
    EXPECT_CODE(kFailedPrecondition, status) << "from " << PrimitiveName(primitive);
  }
}

KEEL_CONFORMANCE_CASE(HostCalls, CannotUseTheDevice, .needs = {&Capabilities::host_calls}) {
  ASSERT_VALUE(const Props props, Props::Create(context));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  Attempt attempt{&context.device(), &props, {}};
  ASSERT_OK(
      context.device().CallHost(stream.get(), {.function = &TryEveryPrimitive, .data = &attempt}));
  ASSERT_OK(stream.Synchronize(InTime()));
  ExpectAllRefused(attempt);
  EXPECT_TRUE(context.Works());
}

KEEL_CONFORMANCE_CASE(HostCalls, CannotUseAnotherDevice, .devices = 2,
                      .needs = {&Capabilities::host_calls}) {
  ASSERT_VALUE(const Props props, Props::Create(context, 1));
  ASSERT_VALUE(const Stream stream, context.NewStream(0));
  Attempt attempt{&context.device(1), &props, {}};
  ASSERT_OK(
      context.device(0).CallHost(stream.get(), {.function = &TryEveryPrimitive, .data = &attempt}));
  ASSERT_OK(stream.Synchronize(InTime()));
  ExpectAllRefused(attempt);
  EXPECT_TRUE(context.Works(1));
}

KEEL_CONFORMANCE_CASE(HostCalls, OfAGraphCannotUseTheDeviceEither,
                      .needs = {&Capabilities::host_calls, &Capabilities::graphs}) {
  ASSERT_VALUE(const Props props, Props::Create(context));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const Graph graph, Graph::Create(context.shared()));
  Attempt attempt{&context.device(), &props, {}};
  ASSERT_OK(context.device().AddNode(graph.get(), {},
                                     HostCall{.function = &TryEveryPrimitive, .data = &attempt}));
  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(graph));
  ASSERT_OK(exec.Launch(stream.get()));
  ASSERT_OK(stream.Synchronize(InTime()));
  ExpectAllRefused(attempt);
}

}  // namespace
}  // namespace keel::hal::conformance
