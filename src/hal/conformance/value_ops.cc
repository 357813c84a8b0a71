// Writing and waiting for 64-bit values in stream order.

#include <cstring>
#include <limits>
#include <thread>

#include "hal/conformance/context.h"

namespace keel::hal::conformance {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

// Lets a stream go that waits for a word, also when the case ends early: a stream that waits for
// ever could not be closed.
class LetGo {
 public:
  LetGo(const PinnedWords& words, std::uint64_t value, const Stream& stream)
      : words_(words), value_(value), stream_(stream) {}
  ~LetGo() {
    words_.Store(value_);
    EXPECT_OK(stream_.Synchronize(InTime()));
  }
  LetGo(const LetGo&) = delete;
  LetGo& operator=(const LetGo&) = delete;

 private:
  const PinnedWords& words_;
  const std::uint64_t value_;
  const Stream& stream_;
};

KEEL_CONFORMANCE_CASE(ValueWrites, ReachDeviceAndHostMemory,
                      .needs = {&Capabilities::value_writes}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(64_B));
  ASSERT_VALUE(const PinnedWords words, context.NewWords(4));
  ASSERT_OK(context.Write(memory.address(), std::vector<std::uint64_t>(8, 7)));
  for (const std::uint64_t value : {std::uint64_t{1}, std::uint64_t{0x0123456789ABCDEF}, kMost}) {
    SCOPED_TRACE(value);
    ASSERT_OK(
        device.WriteValue(stream.get(), {.destination = memory.address() + 8_B, .value = value}));
    ASSERT_OK(device.WriteValue(stream.get(), {.destination = words.address(1), .value = value}));
    ASSERT_OK(stream.Synchronize(InTime()));
    ASSERT_VALUE(const std::vector<std::uint64_t> seen,
                 context.Read<std::uint64_t>(memory.address(), 3));
    EXPECT_EQ(seen, (std::vector<std::uint64_t>{7, value, 7}));
    EXPECT_EQ(words.Load(0), 0u);
    EXPECT_EQ(words.Load(1), value);
    EXPECT_EQ(words.Load(2), 0u);
  }
}

// The timeline that allocators and graphs read: no call to the driver, and when the value is there
// so is everything before it.
KEEL_CONFORMANCE_CASE(ValueWrites, AreSeenByTheHostWithoutACall,
                      .needs = {&Capabilities::value_writes}) {
  constexpr Bytes kSize = 256_KiB;
  InstrumentedDevice& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(kSize));
  ASSERT_VALUE(const HostMemory arrived, HostMemory::Create(context.shared(), kSize));
  ASSERT_VALUE(const PinnedWords timeline, context.NewWords(1));
  for (std::uint32_t step = 1; step <= 20; ++step) {
    ASSERT_OK(device.EnqueueFill(
        stream.get(),
        {.destination = memory.address(), .value = step, .width = 4, .count = kSize.count() / 4}));
    ASSERT_OK(
        device.EnqueueCopy(stream.get(), {.destination = Location::Host(arrived.data()),
                                          .source = Location::On(device.id(), memory.address()),
                                          .size = kSize}));
    ASSERT_OK(device.WriteValue(stream.get(), {.destination = timeline.address(), .value = step}));
    const std::uint64_t calls = device.calls();
    ASSERT_TRUE(timeline.WaitFor(step));
    const auto* words = static_cast<const std::uint32_t*>(arrived.data());
    EXPECT_EQ(words[0], step);
    EXPECT_EQ(words[kSize.count() / 4 - 1], step);
    EXPECT_EQ(device.calls(), calls);
  }
  ASSERT_OK(stream.Synchronize(InTime()));
}

KEEL_CONFORMANCE_CASE(ValueWrites, HappenInStreamOrder, .needs = {&Capabilities::value_writes},
                      .blocks = true) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PinnedWords words, context.NewWords(1));
  ASSERT_VALUE(Blocker blocker, context.Block(stream.get()));
  for (std::uint64_t value = 1; value <= 10; ++value) {
    ASSERT_OK(device.WriteValue(stream.get(), {.destination = words.address(), .value = value}));
  }
  EXPECT_EQ(words.Load(), 0u);
  EXPECT_TRUE(blocker.blocked());
  blocker.Release();
  ASSERT_OK(stream.Synchronize(InTime()));
  EXPECT_EQ(words.Load(), 10u);
}

KEEL_CONFORMANCE_CASE(ValueWrites, BadAddressesAreRefused, .needs = {&Capabilities::value_writes}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  for (const std::uint64_t shift : {1u, 2u, 4u, 7u}) {
    EXPECT_CODE(kInvalidArgument,
                device.WriteValue(stream.get(),
                                  {.destination = memory.address() + Bytes(shift), .value = 1}));
  }
  EXPECT_CODE(kInvalidArgument, device.WriteValue(stream.get(), {.value = 1}));
  EXPECT_CODE(kInvalidArgument,
              device.WriteValue(StreamHandle{}, {.destination = memory.address()}));
  EXPECT_CODE(
      kInvalidArgument,
      device.WriteValue(stream.get(), {.destination = DeviceAddress(kMost - 7), .value = 1}));
  EXPECT_TRUE(context.Works());
}

KEEL_CONFORMANCE_CASE(ValueWrites, ToWhereNothingIsMappedHarmNothing,
                      .needs = {&Capabilities::value_writes, &Capabilities::virtual_memory}) {
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(AddressRange range, AddressRange::Create(context.shared(), context.granule()));
  EXPECT_CODE(kInvalidArgument, context.device().WriteValue(
                                    stream.get(), {.destination = range.address(), .value = 1}));
  EXPECT_TRUE(context.Works());
}

struct Condition {
  WaitCondition condition;
  std::uint64_t wanted;
  std::vector<std::uint64_t> not_met;
  std::vector<std::uint64_t> met;
};

const std::vector<Condition>& Conditions() {
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;
  static const std::vector<Condition> conditions = {
      // Cyclic: (int64_t)(memory - value) >= 0.
      {WaitCondition::kGreaterOrEqual, 5, {4, 0, kMost, kHalf + 5}, {5, 6, 1000, kHalf + 4}},
      {WaitCondition::kGreaterOrEqual, 2, {1, 0, kMost, kMost - 1}, {2, 3}},
      {WaitCondition::kGreaterOrEqual, kMost - 2, {kMost - 3, 5000000 + kHalf}, {kMost, 0, 5}},
      {WaitCondition::kEqual, 5, {4, 6, 0, kMost, 5 + kHalf}, {5}},
      {WaitCondition::kEqual, kMost, {0, kMost >> 1}, {kMost}},
      {WaitCondition::kAnd, 0b1010, {0, 0b0101, 0b10000}, {0b0010, 0b1000, kMost}},
      {WaitCondition::kAnd, kHalf, {0, kHalf - 1}, {kHalf, kMost}},
  };
  return conditions;
}

KEEL_CONFORMANCE_CASE(ValueWaits, PassWhenTheConditionIsMet,
                      .needs = {&Capabilities::value_waits}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PinnedWords words, context.NewWords(1));
  for (const Condition& condition : Conditions()) {
    for (const std::uint64_t value : condition.met) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(condition.condition) << ": " << value
                                      << " for " << condition.wanted);
      words.Store(value);
      ASSERT_OK(device.WaitValue(stream.get(), {.source = words.address(),
                                                .value = condition.wanted,
                                                .condition = condition.condition}));
      const LetGo let_go(words, condition.met.front(), stream);
      EXPECT_OK(stream.Synchronize(Deadline::After(std::chrono::seconds(10))));
    }
  }
}

KEEL_CONFORMANCE_CASE(ValueWaits, HoldUntilTheHostMeetsTheCondition,
                      .needs = {&Capabilities::value_waits}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PinnedWords words, context.NewWords(1));
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  for (const Condition& condition : Conditions()) {
    for (const std::uint64_t value : condition.not_met) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(condition.condition) << ": " << value
                                      << " for " << condition.wanted);
      words.Store(value);
      ASSERT_OK(context.Write(memory.address(), std::vector<std::uint32_t>(1, 0)));
      ASSERT_OK(device.WaitValue(stream.get(), {.source = words.address(),
                                                .value = condition.wanted,
                                                .condition = condition.condition}));
      const LetGo let_go(words, condition.met.front(), stream);
      ASSERT_OK(device.EnqueueFill(
          stream.get(), {.destination = memory.address(), .value = 1, .width = 4, .count = 1}));
      EXPECT_CODE(kDeadlineExceeded,
                  stream.Synchronize(Deadline::After(std::chrono::milliseconds(3))));
      EXPECT_TRUE(context.HoldsWord(memory.address(), 1, 0));
      // From anywhere to anything that meets it.
      words.Store(condition.met.back());
      ASSERT_OK(stream.Synchronize(InTime()));
      EXPECT_TRUE(context.HoldsWord(memory.address(), 1, 1));
    }
  }
}

KEEL_CONFORMANCE_CASE(ValueWaits, AreMetByWritesOfOtherStreams,
                      .needs = {&Capabilities::value_waits, &Capabilities::value_writes}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream waiting, context.NewStream());
  ASSERT_VALUE(const Stream writing, context.NewStream());
  ASSERT_VALUE(const PlainMemory flag, context.NewPlain(8_B));
  ASSERT_VALUE(const PlainMemory data, context.NewPlain(64_KiB));
  ASSERT_VALUE(const PlainMemory copy, context.NewPlain(64_KiB));
  ASSERT_OK(context.Write<std::uint64_t>(flag.address(), {0}));
  ASSERT_OK(device.WaitValue(waiting.get(), {.source = flag.address(), .value = 3}));
  ASSERT_OK(
      device.EnqueueCopy(waiting.get(), {.destination = Location::On(device.id(), copy.address()),
                                         .source = Location::On(device.id(), data.address()),
                                         .size = 64_KiB}));
  for (std::uint64_t value = 1; value <= 3; ++value) {
    ASSERT_OK(device.EnqueueFill(writing.get(), {.destination = data.address(),
                                                 .value = static_cast<std::uint32_t>(value),
                                                 .width = 4,
                                                 .count = 16384}));
    ASSERT_OK(device.WriteValue(writing.get(), {.destination = flag.address(), .value = value}));
  }
  ASSERT_OK(waiting.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsWord(copy.address(), 16384, 3));
  ASSERT_OK(writing.Synchronize(InTime()));
}

KEEL_CONFORMANCE_CASE(ValueWaits, TwoStreamsPassTheBallBackAndForth,
                      .needs = {&Capabilities::value_waits, &Capabilities::value_writes}) {
  constexpr std::uint64_t kRounds = 20;
  Device& device = context.device();
  ASSERT_VALUE(const Stream a, context.NewStream());
  ASSERT_VALUE(const Stream b, context.NewStream());
  ASSERT_VALUE(const PinnedWords words, context.NewWords(2));
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    ASSERT_OK(device.WriteValue(a.get(), {.destination = words.address(0), .value = round}));
    ASSERT_OK(device.WaitValue(b.get(), {.source = words.address(0), .value = round}));
    ASSERT_OK(device.WriteValue(b.get(), {.destination = words.address(1), .value = round}));
    ASSERT_OK(device.WaitValue(a.get(), {.source = words.address(1), .value = round}));
  }
  EXPECT_OK(a.Synchronize(InTime()));
  EXPECT_OK(b.Synchronize(InTime()));
  EXPECT_EQ(words.Load(0), kRounds);
  EXPECT_EQ(words.Load(1), kRounds);
}

KEEL_CONFORMANCE_CASE(ValueWaits, OrderTwoDevices, .devices = 2,
                      .needs = {&Capabilities::value_waits, &Capabilities::value_writes}) {
  ASSERT_VALUE(const Stream first, context.NewStream(0));
  ASSERT_VALUE(const Stream second, context.NewStream(1));
  ASSERT_VALUE(const PinnedWords words, context.NewWords(2, 0));
  ASSERT_VALUE(const DeviceAddress flag, context.device(1).GetHostAddress(words.data()));
  ASSERT_VALUE(const DeviceAddress result, context.device(1).GetHostAddress(words.data() + 1));
  ASSERT_OK(context.device(1).WaitValue(second.get(), {.source = flag, .value = 1}));
  const LetGo let_go(words, 1, second);
  ASSERT_OK(context.device(1).WriteValue(second.get(), {.destination = result, .value = 77}));
  EXPECT_CODE(kDeadlineExceeded,
              second.Synchronize(Deadline::After(std::chrono::milliseconds(10))));
  EXPECT_EQ(words.Load(1), 0u);
  ASSERT_OK(
      context.device(0).WriteValue(first.get(), {.destination = words.address(0), .value = 1}));
  EXPECT_OK(second.Synchronize(InTime()));
  EXPECT_EQ(words.Load(1), 77u);
  EXPECT_OK(first.Synchronize(InTime()));
}

KEEL_CONFORMANCE_CASE(ValueWaits, HoldOnlyTheirStream, .needs = {&Capabilities::value_waits}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream held, context.NewStream());
  ASSERT_VALUE(const Stream free, context.NewStream());
  ASSERT_VALUE(const PinnedWords words, context.NewWords(1));
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_OK(device.WaitValue(held.get(), {.source = words.address(), .value = 1}));
  const LetGo let_go(words, 1, held);
  ASSERT_OK(device.EnqueueFill(
      free.get(), {.destination = memory.address(), .value = 1, .width = 4, .count = 1024}));
  EXPECT_OK(free.Synchronize(InTime()));
  ASSERT_VALUE(const Completion completion, held.Query());
  EXPECT_EQ(completion, Completion::kPending);
}

KEEL_CONFORMANCE_CASE(ValueWaits, BadAddressesAreRefused, .needs = {&Capabilities::value_waits}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  for (const std::uint64_t shift : {1u, 4u}) {
    EXPECT_CODE(kInvalidArgument,
                device.WaitValue(stream.get(), {.source = memory.address() + Bytes(shift)}));
  }
  EXPECT_CODE(kInvalidArgument, device.WaitValue(stream.get(), {.value = 1}));
  EXPECT_CODE(kInvalidArgument, device.WaitValue(StreamHandle{}, {.source = memory.address()}));
  EXPECT_OK(stream.Synchronize(InTime()));
}

}  // namespace
}  // namespace keel::hal::conformance
