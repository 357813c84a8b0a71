// Streams: order, independence, default and borrowed ones, destruction. Waiting is in waits.cc.

#include <array>
#include <atomic>
#include <limits>
#include <thread>

#include "hal/conformance/context.h"
#include "hal/conformance/every_primitive.h"

namespace keel::hal::conformance {
namespace {

KEEL_CONFORMANCE_CASE(Streams, AnyPriorityIsClamped) {
  for (const int priority :
       {std::numeric_limits<int>::min(), -100, -1, 0, 1, 100, std::numeric_limits<int>::max()}) {
    SCOPED_TRACE(priority);
    ASSERT_VALUE(Stream stream, Stream::Create(context.shared(), {.priority = priority}));
    ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
    EXPECT_OK(context.device().EnqueueFill(
        stream.get(), {.destination = memory.address(), .value = 5, .width = 4, .count = 1024}));
    EXPECT_OK(stream.Synchronize(InTime()));
    EXPECT_TRUE(context.HoldsWord(memory.address(), 1024, 5));
  }
}

KEEL_CONFORMANCE_CASE(Streams, CommandsOfOneRunInOrder) {
  constexpr std::uint32_t kRounds = 100;
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory a, context.NewPlain(64_KiB));
  ASSERT_VALUE(const PlainMemory b, context.NewPlain(Bytes(kRounds * 4)));
  // Each value is copied away before the next fill replaces it: any exchange of two commands
  // leaves a wrong value behind.
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    ASSERT_OK(device.EnqueueFill(
        stream.get(),
        {.destination = a.address(), .value = round + 1, .width = 4, .count = 16384}));
    ASSERT_OK(device.EnqueueCopy(
        stream.get(), {.destination = Location::On(device.id(), b.address() + Bytes(round * 4)),
                       .source = Location::On(device.id(), a.address() + 64_KiB - 4_B),
                       .size = 4_B}));
  }
  ASSERT_OK(stream.Synchronize(InTime()));
  ASSERT_VALUE(const std::vector<std::uint32_t> seen,
               context.Read<std::uint32_t>(b.address(), kRounds));
  for (std::uint32_t round = 0; round < kRounds; ++round) EXPECT_EQ(seen[round], round + 1);
}

KEEL_CONFORMANCE_CASE(Streams, OrderHoldsAcrossKindsOfCommands, .needs = {&Capabilities::kernels}) {
  constexpr std::uint32_t kRounds = 50;
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory a, context.NewPlain(4_KiB));
  ASSERT_VALUE(const PlainMemory b, context.NewPlain(4_KiB));
  ASSERT_VALUE(const KernelHandle reduce, context.Kernel(kernels::kReduce));
  ASSERT_VALUE(const PlainMemory total, context.NewPlain(8_B));
  ASSERT_OK(context.Write<std::uint64_t>(total.address(), {0}));
  std::uint64_t want = 0;
  for (std::uint32_t round = 1; round <= kRounds; ++round) {
    ASSERT_OK(context.LaunchFill(stream.get(), a.address(), round, 1024));
    ASSERT_OK(
        device.EnqueueCopy(stream.get(), {.destination = Location::On(device.id(), b.address()),
                                          .source = Location::On(device.id(), a.address()),
                                          .size = 4_KiB}));
    ASSERT_OK(device.EnqueueFill(
        stream.get(), {.destination = a.address(), .value = 0, .width = 4, .count = 1024}));
    const std::array args = {KernelArg::In(b.address(), 4_KiB),
                             KernelArg::InOut(total.address(), 8_B),
                             KernelArg::Value<std::uint64_t>(1024)};
    ASSERT_OK(device.LaunchKernel(stream.get(), {.kernel = reduce, .args = args}));
    want += std::uint64_t{round} * 1024;
  }
  ASSERT_OK(stream.Synchronize(InTime()));
  ASSERT_VALUE(const std::vector<std::uint64_t> sum,
               context.Read<std::uint64_t>(total.address(), 1));
  EXPECT_EQ(sum[0], want);
}

KEEL_CONFORMANCE_CASE(Streams, DoNotWaitForEachOther, .blocks = true) {
  ASSERT_VALUE(const Stream held, context.NewStream());
  ASSERT_VALUE(const Stream free, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_VALUE(Blocker blocker, context.Block(held.get()));
  ASSERT_OK(context.device().EnqueueFill(
      free.get(), {.destination = memory.address(), .value = 9, .width = 4, .count = 1024}));
  EXPECT_OK(free.Synchronize(InTime()));
  EXPECT_TRUE(blocker.blocked());
  EXPECT_TRUE(context.HoldsWord(memory.address(), 1024, 9));
}

KEEL_CONFORMANCE_CASE(Streams, QueryTellsPendingFromDone, .blocks = true) {
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const Completion idle, stream.Query());
  EXPECT_EQ(idle, Completion::kDone);
  ASSERT_VALUE(Blocker blocker, context.Block(stream.get()));
  ASSERT_VALUE(const Completion busy, stream.Query());
  EXPECT_EQ(busy, Completion::kPending);
  blocker.Release();
  ASSERT_OK(stream.Synchronize(InTime()));
  ASSERT_VALUE(const Completion after, stream.Query());
  EXPECT_EQ(after, Completion::kDone);
}

KEEL_CONFORMANCE_CASE(Streams, QueueingDoesNotWait, .all_devices = true, .blocks = true) {
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(1_MiB));
  ASSERT_VALUE(Blocker blocker, context.Block(stream.get()));
  // Far more than a small queue holds.
  for (int i = 0; i < 500; ++i) {
    ASSERT_OK(context.device().EnqueueFill(
        stream.get(), {.destination = memory.address(), .value = 1, .width = 4, .count = 1024}));
  }
  EXPECT_TRUE(blocker.blocked()) << "queueing waited for the stream";
  blocker.Release();
  EXPECT_OK(stream.Synchronize(InTime()));
}

// "Only Synchronize* and the pageable copies wait, and plain frees may."
KEEL_CONFORMANCE_CASE(Streams, NothingElseWaitsForTheDevice, .all_devices = true, .blocks = true) {
  ASSERT_VALUE(const Stream stream, context.NewStream());
  Leftovers leftovers;
  {
    ASSERT_VALUE(Blocker blocker, context.Block(stream.get()));
    leftovers = UseEveryPrimitive(context, Waiting::kForbidden);
    EXPECT_TRUE(blocker.blocked()) << "a primitive waited for the stream";
  }
  EXPECT_OK(context.device().Synchronize(InTime()));
}

KEEL_CONFORMANCE_CASE(Streams, DestroyedOnesFinishTheirWork, .blocks = true) {
  Device& device = context.device();
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(64_KiB));
  ASSERT_OK(context.Write(memory.address(), std::vector<std::uint32_t>(16384, 0)));
  ASSERT_VALUE(const StreamHandle stream, device.CreateStream({}));
  ASSERT_VALUE(const Event done, context.NewEvent());
  {
    ASSERT_VALUE(Blocker blocker, context.Block(stream));
    ASSERT_OK(device.EnqueueFill(
        stream, {.destination = memory.address(), .value = 3, .width = 4, .count = 16384}));
    ASSERT_OK(done.Record(stream));
    EXPECT_OK(device.DestroyStream(stream));
    EXPECT_TRUE(blocker.blocked()) << "destroying waited for the stream";
    ASSERT_VALUE(const Completion before, done.Query());
    EXPECT_EQ(before, Completion::kPending);
  }
  ASSERT_OK(done.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsWord(memory.address(), 16384, 3));
}

KEEL_CONFORMANCE_CASE(Streams, ManyComeAndGo) {
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  for (int round = 0; round < 10; ++round) {
    std::vector<Stream> streams;
    for (int i = 0; i < 20; ++i) {
      ASSERT_VALUE(Stream stream, context.NewStream());
      ASSERT_OK(context.device().EnqueueFill(
          stream.get(), {.destination = memory.address() + Bytes(static_cast<std::uint64_t>(i) * 4),
                         .value = 1,
                         .width = 4,
                         .count = 1}));
      streams.push_back(std::move(stream));
    }
  }
  EXPECT_OK(context.device().Synchronize(InTime()));
}

KEEL_CONFORMANCE_CASE(Streams, DefaultOnesWorkAndStay) {
  Device& device = context.device();
  for (const DefaultStream which : {DefaultStream::kLegacy, DefaultStream::kPerThread}) {
    ASSERT_VALUE(const StreamHandle stream, device.GetDefaultStream(which));
    EXPECT_TRUE(stream);
    ASSERT_VALUE(const StreamHandle again, device.GetDefaultStream(which));
    EXPECT_EQ(stream, again);
    EXPECT_CODE(kFailedPrecondition, device.DestroyStream(stream));
    ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
    ASSERT_OK(device.EnqueueFill(
        stream, {.destination = memory.address(), .value = 4, .width = 4, .count = 1024}));
    ASSERT_OK(device.SynchronizeStream(stream, InTime()));
    EXPECT_TRUE(context.HoldsWord(memory.address(), 1024, 4));
    ASSERT_VALUE(const Completion completion, device.QueryStream(stream));
    EXPECT_EQ(completion, Completion::kDone);
  }
}

KEEL_CONFORMANCE_CASE(Streams, NeverSynchroniseWithTheLegacyDefault, .blocks = true) {
  Device& device = context.device();
  ASSERT_VALUE(const StreamHandle legacy, device.GetDefaultStream(DefaultStream::kLegacy));
  ASSERT_VALUE(const Stream created, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  const Fill fill{.destination = memory.address(), .value = 1, .width = 4, .count = 1024};
  {
    ASSERT_VALUE(Blocker blocker, context.Block(legacy));
    ASSERT_OK(device.EnqueueFill(created.get(), fill));
    EXPECT_OK(created.Synchronize(InTime()));
    EXPECT_TRUE(blocker.blocked());
  }
  {
    ASSERT_VALUE(Blocker blocker, context.Block(created.get()));
    ASSERT_OK(device.EnqueueFill(legacy, fill));
    EXPECT_OK(device.SynchronizeStream(legacy, InTime()));
    EXPECT_TRUE(blocker.blocked());
  }
}

KEEL_CONFORMANCE_CASE(Streams, TheLegacyDefaultIsSharedByThreads, .blocks = true) {
  Device& device = context.device();
  ASSERT_VALUE(const StreamHandle legacy, device.GetDefaultStream(DefaultStream::kLegacy));
  ASSERT_VALUE(Blocker blocker, context.Block(legacy));
  std::thread([&] {
    ASSERT_VALUE(const StreamHandle same, device.GetDefaultStream(DefaultStream::kLegacy));
    ASSERT_VALUE(const Completion completion, device.QueryStream(same));
    EXPECT_EQ(completion, Completion::kPending);
  }).join();
}

KEEL_CONFORMANCE_CASE(Streams, ThePerThreadDefaultIsTheThreadsOwn, .blocks = true) {
  Device& device = context.device();
  ASSERT_VALUE(const StreamHandle mine, device.GetDefaultStream(DefaultStream::kPerThread));
  // Freed when nothing is blocked any more: a plain free may wait for the device.
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_VALUE(Blocker blocker, context.Block(mine));
  std::thread([&] {
    ASSERT_VALUE(const StreamHandle other, device.GetDefaultStream(DefaultStream::kPerThread));
    ASSERT_OK(device.EnqueueFill(
        other, {.destination = memory.address(), .value = 6, .width = 4, .count = 1024}));
    EXPECT_OK(device.SynchronizeStream(other, InTime()));
    EXPECT_TRUE(blocker.blocked());
    EXPECT_TRUE(context.HoldsWord(memory.address(), 1024, 6));
  }).join();
}

KEEL_CONFORMANCE_CASE(Streams, ABorrowedOneIsTheStreamItself, .blocks = true) {
  Device& device = context.device();
  ASSERT_VALUE(Stream owned, context.NewStream());
  ASSERT_VALUE(const StreamHandle borrowed, device.BorrowStream(owned.get().value));
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_OK(context.Write(memory.address(), std::vector<std::uint32_t>(1024, 0)));
  ASSERT_VALUE(Blocker blocker, context.Block(owned.get()));
  // One order for what comes through either.
  ASSERT_OK(device.EnqueueFill(
      borrowed, {.destination = memory.address(), .value = 1, .width = 4, .count = 1024}));
  ASSERT_OK(device.EnqueueFill(
      owned.get(), {.destination = memory.address(), .value = 2, .width = 4, .count = 512}));
  ASSERT_VALUE(const Completion pending, device.QueryStream(borrowed));
  EXPECT_EQ(pending, Completion::kPending);
  blocker.Release();
  ASSERT_OK(device.SynchronizeStream(borrowed, InTime()));
  EXPECT_TRUE(context.HoldsWord(memory.address(), 512, 2));
  EXPECT_TRUE(context.HoldsWord(memory.address() + 2_KiB, 512, 1));
  EXPECT_OK(owned.Close());
}

KEEL_CONFORMANCE_CASE(Streams, WhatIsNoStreamCannotBeBorrowed, .stale_handles = true) {
  Device& device = context.device();
  EXPECT_CODE(kInvalidArgument, device.BorrowStream(0x123456789ABCDEF0));
  ASSERT_VALUE(const StreamHandle stream, device.CreateStream({}));
  ASSERT_OK(device.DestroyStream(stream));
  EXPECT_CODE(kInvalidArgument, device.BorrowStream(stream.value));
}

KEEL_CONFORMANCE_CASE(Streams, OfAnotherDeviceAreRefused, .devices = 2, .stale_handles = true) {
  ASSERT_VALUE(const Stream other, context.NewStream(1));
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  Device& device = context.device(0);
  EXPECT_CODE(kInvalidArgument, device.BorrowStream(other.get().value));
  EXPECT_CODE(kInvalidArgument,
              device.EnqueueFill(other.get(), {.destination = memory.address(), .count = 16}));
  EXPECT_CODE(kInvalidArgument, device.QueryStream(other.get()));
  EXPECT_CODE(kInvalidArgument, device.DestroyStream(other.get()));
  EXPECT_OK(other.Synchronize(InTime()));
}

}  // namespace
}  // namespace keel::hal::conformance
