// Loss: what a fault does to the device, and to nothing else. Each case runs in a process of its
// own, because a real device takes the process's state with it.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "hal/conformance/context.h"
#include "hal/conformance/props.h"

namespace keel::hal::conformance {
namespace {

using std::chrono::steady_clock;

// A fault may wait for what is running: where it does, that must come to its end.
void LetLossThrough(CaseContext& context, Blocker& blocker) {
  if (!context.join().loss_stops_running_work) {
    blocker.ReleaseAfter(std::chrono::milliseconds(100));
  }
}

// Runs a kernel on a page that is not mapped, and waits until the device is lost.
testing::AssertionResult Lose(CaseContext& context, int i = 0, std::string* message = nullptr) {
  const auto run = [&]() -> Result<DeviceAddress> {
    KEEL_ASSIGN(const DeviceAddress bad,
                context.device(i).ReserveAddress(context.granule(i), Bytes(0), DeviceAddress()));
    KEEL_ASSIGN(const StreamHandle stream, context.device(i).CreateStream({}));
    KEEL_TRY(context.LaunchFill(stream, bad, 1, 16, i));
    const Status status = context.device(i).SynchronizeStream(stream, InTime());
    if (status.code() != StatusCode::kDeviceLost) {
      return Internal("the stream ended with " + status.ToString());
    }
    if (message != nullptr) *message = std::string(status.message());
    return bad;
  };
  const Result<DeviceAddress> bad = run();
  if (!bad.ok()) return testing::AssertionFailure() << bad.status().ToString();
  const Status health = context.device(i).Health();
  if (health.code() != StatusCode::kDeviceLost) {
    return testing::AssertionFailure() << "Health() is " << health.ToString();
  }
  if (context.join().names_fault_address &&
      std::string(health.message()).find(ToString(*bad)) == std::string::npos) {
    return testing::AssertionFailure()
           << "the message does not name " << ToString(*bad) << ": " << health.ToString();
  }
  return testing::AssertionSuccess();
}

// What it takes to make a fault.
const std::vector<bool Capabilities::*> kFaults = {&Capabilities::kernels,
                                                   &Capabilities::virtual_memory};
const std::vector<bool Capabilities::*> kFaultsInGraphs = {
    &Capabilities::kernels, &Capabilities::virtual_memory, &Capabilities::graphs};
const std::vector<bool Capabilities::*> kFaultsAndCalls = {
    &Capabilities::kernels, &Capabilities::virtual_memory, &Capabilities::host_calls};
// Where addresses are not unified, a peer's address means something else.
const std::vector<bool Capabilities::*> kFaultsOfPeers = {
    &Capabilities::kernels, &Capabilities::virtual_memory, &Capabilities::unified_addresses};

KEEL_CONFORMANCE_CASE(Loss, AKernelOnAnUnmappedPageLosesTheDevice, .needs = kFaults,
                      .loses_device = true) {
  EXPECT_TRUE(Lose(context));
}

KEEL_CONFORMANCE_CASE(Loss, EveryPrimitiveSaysSo, .needs = kFaults, .loses_device = true) {
  ASSERT_VALUE(const Props props, Props::Create(context));
  const DeviceId id = context.device().id();
  const std::string identity = context.device().info().identity;
  std::string message;
  ASSERT_TRUE(Lose(context, 0, &message));
  ExpectFromPrimitives(context.device(), props, StatusCode::kDeviceLost);
  // With the message of the fault, always the same.
  EXPECT_EQ(StatusOf(context.device().GetMemoryInfo()).message(), message);
  EXPECT_EQ(StatusOf(context.device().AllocatePlain(4_KiB)).message(), message);
  EXPECT_EQ(context.device().Health().message(), message);
  // What needs no device still answers.
  EXPECT_EQ(context.device().id(), id);
  EXPECT_EQ(context.device().info().identity, identity);
  EXPECT_TRUE(context.device().capabilities().kernels);
}

// A12: an event of a lost device is an error, never "not yet": who polls would poll for ever.
KEEL_CONFORMANCE_CASE(Loss, EventsAreErrorsNeverPending, .needs = kFaults, .blocks = true,
                      .loses_device = true) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream done_stream, context.NewStream());
  ASSERT_VALUE(const Stream held, context.NewStream());
  ASSERT_VALUE(const Event done, context.NewEvent());
  ASSERT_VALUE(const Event fresh, context.NewEvent());
  ASSERT_VALUE(const Event pending, context.NewEvent());
  ASSERT_OK(done.Record(done_stream.get()));
  ASSERT_OK(done.Synchronize(InTime()));
  ASSERT_VALUE(Blocker blocker, context.Block(held.get()));
  ASSERT_OK(pending.Record(held.get()));
  LetLossThrough(context, blocker);
  ASSERT_TRUE(Lose(context));
  for (const Event* event : {&done, &fresh, &pending}) {
    EXPECT_CODE(kDeviceLost, device.QueryEvent(event->get()));
    EXPECT_CODE(kDeviceLost, device.SynchronizeEvent(event->get(), InTime()));
    EXPECT_CODE(kDeviceLost, device.SynchronizeEvent(event->get(), Deadline::Now()));
  }
  for (const Stream* stream : {&done_stream, &held}) {
    EXPECT_CODE(kDeviceLost, device.QueryStream(stream->get()));
    EXPECT_CODE(kDeviceLost, device.SynchronizeStream(stream->get(), InTime()));
  }
}

// Who waits when it happens is woken, in every stream.
KEEL_CONFORMANCE_CASE(Loss, WaitersAreWoken, .needs = kFaults, .blocks = true,
                      .loses_device = true) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream held, context.NewStream());
  ASSERT_VALUE(const Stream behind, context.NewStream());
  ASSERT_VALUE(const Event event, context.NewEvent());
  ASSERT_VALUE(Blocker blocker, context.Block(held.get()));
  ASSERT_OK(event.Record(held.get()));
  ASSERT_OK(device.WaitEvent(behind.get(), event.get()));
  const auto start = steady_clock::now();
  // Where the work that runs may end as if nothing had happened, a wait for it may too.
  const auto expect_woken = [&](const Status& status) {
    if (context.join().loss_stops_running_work || !status.ok()) {
      EXPECT_CODE(kDeviceLost, status);
    }
  };
  std::vector<std::thread> waiters;
  waiters.emplace_back([&] { expect_woken(event.Synchronize(InTime())); });
  waiters.emplace_back([&] { expect_woken(held.Synchronize(InTime())); });
  waiters.emplace_back([&] { expect_woken(behind.Synchronize(InTime())); });
  waiters.emplace_back([&] { expect_woken(device.Synchronize(Deadline::Never())); });
  LetLossThrough(context, blocker);
  EXPECT_TRUE(Lose(context));
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(15));
}

KEEL_CONFORMANCE_CASE(Loss, WorkBehindItDoesNotRun, .needs = kFaultsAndCalls, .blocks = true,
                      .loses_device = true) {
  std::atomic<int> calls{0};
  std::atomic<int> calls_elsewhere{0};
  const HostFunction count = [](void* data) { ++*static_cast<std::atomic<int>*>(data); };
  {
    Device& device = context.device();
    ASSERT_VALUE(const Stream faulting, context.NewStream());
    ASSERT_VALUE(const Stream other, context.NewStream());
    ASSERT_VALUE(const AddressRange range,
                 AddressRange::Create(context.shared(), context.granule()));
    ASSERT_VALUE(Blocker blocker, context.Block(other.get()));
    ASSERT_OK(device.CallHost(other.get(), {.function = count, .data = &calls_elsewhere}));
    ASSERT_OK(context.LaunchFill(faulting.get(), range.address(), 1, 16));
    // This call may already see the loss.
    (void)device.CallHost(faulting.get(), {.function = count, .data = &calls});
    LetLossThrough(context, blocker);
    EXPECT_CODE(kDeviceLost, faulting.Synchronize(InTime()));
    blocker.Release();
    EXPECT_CODE(kDeviceLost, other.Synchronize(InTime()));
  }
  // What has not run when the device is closed never will.
  const Status reopened = context.Reopen();
  EXPECT_EQ(reopened.ok(), context.join().reopens_after_loss) << reopened.ToString();
  EXPECT_EQ(calls.load(), 0);
  if (context.join().loss_stops_running_work) {
    EXPECT_EQ(calls_elsewhere.load(), 0);
  }
}

KEEL_CONFORMANCE_CASE(Loss, WritingReadOnlyMemoryIsAFault, .needs = kFaults, .loses_device = true) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  const std::array grants = {AccessGrant{device.id(), Access::kRead}};
  ASSERT_VALUE(const MappedMemory memory,
               MappedMemory::Create(context.shared(), context.granule(), grants));
  ASSERT_OK(context.LaunchFill(stream.get(), memory.address(), 1, 16));
  EXPECT_CODE(kDeviceLost, stream.Synchronize(InTime()));
}

KEEL_CONFORMANCE_CASE(Loss, MappedMemoryWithoutAccessIsAFault, .needs = kFaults,
                      .loses_device = true) {
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const AddressRange range, AddressRange::Create(context.shared(), context.granule()));
  ASSERT_VALUE(const PhysicalMemory memory,
               PhysicalMemory::Create(context.shared(), context.granule()));
  ASSERT_VALUE(const Mapping mapping, Mapping::Create(range, Offset(0), memory));
  ASSERT_OK(context.LaunchFill(stream.get(), mapping.address(), 1, 16));
  EXPECT_CODE(kDeviceLost, stream.Synchronize(InTime()));
}

KEEL_CONFORMANCE_CASE(Loss, AMappingThatEndsTooEarlyIsAFault, .needs = kFaults,
                      .loses_device = true) {
  const Bytes granule = context.granule();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const AddressRange range, AddressRange::Create(context.shared(), granule * 2));
  ASSERT_VALUE(const PhysicalMemory memory, PhysicalMemory::Create(context.shared(), granule));
  const std::array grants = {AccessGrant{context.device().id(), Access::kReadWrite}};
  ASSERT_VALUE(const Mapping mapping, Mapping::Create(range, Offset(0), memory, grants));
  ASSERT_OK(context.LaunchFill(stream.get(), range.address(), 1, granule.count() / 4 + 16));
  EXPECT_CODE(kDeviceLost, stream.Synchronize(InTime()));
}

KEEL_CONFORMANCE_CASE(Loss, AnAddressFromATableIsCheckedToo, .needs = kFaults,
                      .loses_device = true) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_VALUE(const PlainMemory table, context.NewPlain(40_B));
  ASSERT_VALUE(const AddressRange range, AddressRange::Create(context.shared(), context.granule()));
  ASSERT_VALUE(const KernelHandle copy, context.Kernel(kernels::kCopyTable));
  // A piece, (row, offset, bytes), and its row, (destination, source).
  ASSERT_OK(context.Write<std::uint64_t>(
      table.address(), {0, 0, 64, range.address().value(), memory.address().value()}));
  const std::array args = {KernelArg::In(table.address(), 24_B),
                           KernelArg::In(table.address() + 24_B, 16_B),
                           KernelArg::Value<std::uint64_t>(1)};
  ASSERT_OK(device.LaunchKernel(stream.get(), {.kernel = copy, .args = args}));
  const Status status = stream.Synchronize(InTime());
  EXPECT_CODE(kDeviceLost, status);
  if (context.join().names_fault_address) {
    EXPECT_NE(std::string(status.message()).find(ToString(range.address())), std::string::npos)
        << status.ToString();
  }
}

KEEL_CONFORMANCE_CASE(Loss, AFaultInAGraphIsAFault, .needs = kFaultsInGraphs,
                      .loses_device = true) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(MappedMemory memory, MappedMemory::Create(context.shared(), context.granule()));
  ASSERT_VALUE(Capture capture, Capture::Begin(context.shared(), stream.get()));
  ASSERT_OK(context.LaunchFill(stream.get(), memory.address(), 1, 16));
  ASSERT_VALUE(const Graph graph, capture.End());
  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(graph));
  ASSERT_OK(exec.Launch(stream.get()));
  ASSERT_OK(stream.Synchronize(InTime()));
  // Recorded while it was mapped; replayed when it is not.
  ASSERT_OK(memory.Close());
  ASSERT_OK(exec.Launch(stream.get()));
  EXPECT_CODE(kDeviceLost, stream.Synchronize(InTime()));
  EXPECT_CODE(kDeviceLost, device.LaunchGraph(exec.get(), stream.get()));
}

KEEL_CONFORMANCE_CASE(Loss, ACaptureThatIsOpenIsLostWithIt, .needs = kFaultsInGraphs,
                      .loses_device = true) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream recording, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_VALUE(const Capture capture, Capture::Begin(context.shared(), recording.get()));
  ASSERT_TRUE(Lose(context));
  EXPECT_CODE(kDeviceLost, device.GetCaptureState(recording.get()));
  EXPECT_CODE(kDeviceLost,
              device.EnqueueFill(recording.get(),
                                 {.destination = memory.address(), .width = 4, .count = 4}));
  EXPECT_CODE(kDeviceLost, device.EndCapture(recording.get()));
}

KEEL_CONFORMANCE_CASE(Loss, OtherDevicesGoOn, .devices = 2, .all_devices = true, .needs = kFaults,
                      .blocks = true, .loses_device = true) {
  // Busy when it happens, and left alone.
  ASSERT_VALUE(const Stream busy, context.NewStream(1));
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB, 1));
  {
    ASSERT_VALUE(Blocker blocker, context.Block(busy.get(), 1));
    ASSERT_OK(context.LaunchFill(busy.get(), memory.address(), 31, 1024, 1));
    ASSERT_TRUE(Lose(context, 0));
    EXPECT_TRUE(blocker.blocked());
  }
  EXPECT_OK(busy.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsWord(memory.address(), 1024, 31, 1));
  for (int i = 1; i < context.device_count(); ++i) {
    EXPECT_OK(context.device(i).Health());
    EXPECT_TRUE(context.Works(i));
  }
  EXPECT_CODE(kDeviceLost, context.device(0).GetMemoryInfo());
}

KEEL_CONFORMANCE_CASE(Loss, APeersPageWithoutAccessLosesTheOneThatTouchesIt, .devices = 2,
                      .needs = kFaultsOfPeers, .loses_device = true) {
  ASSERT_VALUE(const Stream stream, context.NewStream(1));
  // The owner has access, the other device does not.
  ASSERT_VALUE(const MappedMemory memory,
               MappedMemory::Create(context.shared(0), context.granule()));
  ASSERT_OK(context.Write(memory.address(), std::vector<std::uint32_t>(16, 7), 0));
  ASSERT_OK(context.LaunchFill(stream.get(), memory.address(), 1, 16, 1));
  const Status status = stream.Synchronize(InTime());
  EXPECT_CODE(kDeviceLost, status);
  if (context.join().names_fault_address) {
    EXPECT_NE(std::string(status.message()).find(ToString(memory.address())), std::string::npos)
        << status.ToString();
  }
  EXPECT_OK(context.device(0).Health());
  EXPECT_TRUE(context.Works(0));
  EXPECT_TRUE(context.HoldsWord(memory.address(), 16, 7, 0));
}

KEEL_CONFORMANCE_CASE(Loss, APeersPlainMemoryWithoutAccessIsAFault, .devices = 2,
                      .needs = kFaultsOfPeers, .loses_device = true) {
  ASSERT_VALUE(const Stream stream, context.NewStream(1));
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB, 0));
  ASSERT_OK(context.LaunchFill(stream.get(), memory.address(), 1, 16, 1));
  EXPECT_CODE(kDeviceLost, stream.Synchronize(InTime()));
  EXPECT_TRUE(context.Works(0));
}

// Owners of what is gone are destroyed as quietly and quickly as any.
KEEL_CONFORMANCE_CASE(Loss, OwnersAreDestroyedSilently, .needs = kFaults, .loses_device = true) {
  {
    std::vector<Props> owners;
    for (int i = 0; i < 20; ++i) {
      ASSERT_VALUE(Props props, Props::Create(context));
      owners.push_back(std::move(props));
    }
    ASSERT_TRUE(Lose(context));
    const auto start = steady_clock::now();
    testing::internal::CaptureStderr();
    // Closing says what happened; afterwards there is nothing left to own.
    EXPECT_CODE(kDeviceLost, owners.front().plain.Close());
    EXPECT_OK(owners.front().plain.Close());
    owners.clear();
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(5));
  }
  EXPECT_TRUE(context.device().retries().empty());
}

// It is back, or Open says that it is lost: never a device that seems to work.
KEEL_CONFORMANCE_CASE(Loss, OpeningAgainBringsItBackOrSaysWhyNot, .needs = kFaults,
                      .loses_device = true) {
  const DeviceId before = context.device().id();
  {
    ASSERT_VALUE(const PlainMemory memory, context.NewPlain(256_MiB));
    ASSERT_TRUE(Lose(context));
  }
  if (!context.join().reopens_after_loss) {
    EXPECT_CODE(kDeviceLost, context.Reopen());
    return;
  }
  ASSERT_OK(context.Reopen());
  EXPECT_NE(context.device().id(), before);
  EXPECT_OK(context.device().Health());
  EXPECT_TRUE(context.Works());
  // What the lost one held is free again.
  ASSERT_VALUE(const MemoryInfo info, context.device().GetMemoryInfo());
  EXPECT_GE(info.free + 200_MiB, info.total);
}

// An event of the lost device holds no other device up for ever.
KEEL_CONFORMANCE_CASE(Loss, AWaitOfAnotherDeviceEnds, .devices = 2, .needs = kFaults,
                      .blocks = true, .loses_device = true) {
  ASSERT_VALUE(const Stream held, context.NewStream(0));
  ASSERT_VALUE(const Stream waiting, context.NewStream(1));
  ASSERT_VALUE(const Event event, context.NewEvent(0));
  ASSERT_VALUE(Blocker blocker, context.Block(held.get(), 0));
  ASSERT_OK(event.Record(held.get()));
  ASSERT_OK(context.device(1).WaitEvent(waiting.get(), event.get()));
  ASSERT_TRUE(Lose(context, 0));
  blocker.Release();  // a kernel that runs may run to its end
  // Whether that stream goes on or reports an error is not said; that it ends is.
  const Status status = waiting.Synchronize(Deadline::After(std::chrono::seconds(10)));
  EXPECT_NE(status.code(), StatusCode::kDeadlineExceeded) << status.ToString();
}

}  // namespace
}  // namespace keel::hal::conformance
