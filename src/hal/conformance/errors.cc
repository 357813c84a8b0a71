// Rules about bad arguments that hold for every primitive.

#include <array>
#include <functional>
#include <string>

#include "hal/conformance/context.h"
#include "hal/conformance/props.h"

namespace keel::hal::conformance {
namespace {

void DoNothing(void*) {}

// The zero handle is no handle: every primitive that takes one refuses it.
KEEL_CONFORMANCE_CASE(Errors, NoHandleIsRefused) {
  Device& device = context.device();
  const Capabilities& can = context.capabilities();
  ASSERT_VALUE(const Props props, Props::Create(context));
  const StreamHandle stream = props.stream.get();
  const EventHandle event = props.event.get();
  const DeviceAddress at = props.plain.address();
  const Fill fill{.destination = at, .value = 1, .width = 4, .count = 1};
  EXPECT_CODE(kInvalidArgument, device.DestroyStream({}));
  EXPECT_CODE(kInvalidArgument, device.QueryStream({}));
  EXPECT_CODE(kInvalidArgument, device.SynchronizeStream({}, InTime()));
  EXPECT_CODE(kInvalidArgument, device.DestroyEvent({}));
  EXPECT_CODE(kInvalidArgument, device.RecordEvent({}, stream));
  EXPECT_CODE(kInvalidArgument, device.RecordEvent(event, {}));
  EXPECT_CODE(kInvalidArgument, device.WaitEvent({}, event));
  EXPECT_CODE(kInvalidArgument, device.WaitEvent(stream, {}));
  EXPECT_CODE(kInvalidArgument, device.QueryEvent({}));
  EXPECT_CODE(kInvalidArgument, device.SynchronizeEvent({}, InTime()));
  EXPECT_CODE(kInvalidArgument, device.EnqueueFill({}, fill));
  if (can.event_timing) {
    EXPECT_CODE(kInvalidArgument, device.ElapsedMilliseconds({}, props.end.get()));
    EXPECT_CODE(kInvalidArgument, device.ElapsedMilliseconds(props.start.get(), {}));
  }
  if (can.value_writes) {
    EXPECT_CODE(kInvalidArgument, device.WriteValue({}, {.destination = at}));
  }
  if (can.value_waits) {
    EXPECT_CODE(kInvalidArgument, device.WaitValue({}, {.source = at}));
  }
  if (can.host_calls) {
    EXPECT_CODE(kInvalidArgument, device.CallHost({}, {.function = &DoNothing}));
  }
  if (can.virtual_memory) {
    EXPECT_CODE(kInvalidArgument, device.ReleaseMemory({}));
  }
  if (can.exportable_memory) {
    EXPECT_CODE(kInvalidArgument, device.ExportMemory({}));
  }
  if (can.kernels) {
    EXPECT_CODE(kInvalidArgument, device.UnloadModule({}));
  }
  if (can.graphs) {
    EXPECT_CODE(kInvalidArgument, device.BeginCapture({}, CaptureMode::kRelaxed));
    EXPECT_CODE(kInvalidArgument, device.EndCapture({}));
    EXPECT_CODE(kInvalidArgument, device.GetCaptureState({}));
    EXPECT_CODE(kInvalidArgument, device.GetCaptureFrontier({}));
    EXPECT_CODE(kInvalidArgument, device.DestroyGraph({}));
    EXPECT_CODE(kInvalidArgument, device.GetNodes({}));
    EXPECT_CODE(kInvalidArgument, device.Instantiate({}));
    EXPECT_CODE(kInvalidArgument, device.DestroyExec({}));
    EXPECT_CODE(kInvalidArgument, device.LaunchGraph({}, stream));
    EXPECT_CODE(kInvalidArgument, device.LaunchGraph(props.exec.get(), {}));
  }
  EXPECT_TRUE(context.Works());
}

// Handles that were given back, and that nobody ever handed out.
KEEL_CONFORMANCE_CASE(Errors, DeadStreamsAndEventsAreRefused, .stale_handles = true) {
  Device& device = context.device();
  const Capabilities& can = context.capabilities();
  ASSERT_VALUE(const Stream good_stream, context.NewStream());
  ASSERT_VALUE(const Event good_event, context.NewEvent());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_VALUE(const StreamHandle dead_stream, device.CreateStream({}));
  ASSERT_VALUE(const EventHandle dead_event, device.CreateEvent({}));
  ASSERT_OK(device.DestroyStream(dead_stream));
  ASSERT_OK(device.DestroyEvent(dead_event));
  // New objects do not bring the old handles back to life.
  ASSERT_VALUE(const Stream newer_stream, context.NewStream());
  ASSERT_VALUE(const Event newer_event, context.NewEvent());
  for (const StreamHandle stream : {dead_stream, StreamHandle{0xDEAD'BEEF'0000'0010}}) {
    EXPECT_CODE(kInvalidArgument, device.DestroyStream(stream));
    EXPECT_CODE(kInvalidArgument, device.QueryStream(stream));
    EXPECT_CODE(kInvalidArgument, device.SynchronizeStream(stream, InTime()));
    EXPECT_CODE(kInvalidArgument, device.RecordEvent(good_event.get(), stream));
    EXPECT_CODE(kInvalidArgument, device.WaitEvent(stream, good_event.get()));
    EXPECT_CODE(kInvalidArgument,
                device.EnqueueFill(stream, {.destination = memory.address(), .count = 4}));
    EXPECT_CODE(
        kInvalidArgument,
        device.EnqueueCopy(stream, {.destination = Location::On(device.id(), memory.address()),
                                    .source = Location::On(device.id(), memory.address() + 64_B),
                                    .size = 64_B}));
    if (can.host_calls) {
      EXPECT_CODE(kInvalidArgument, device.CallHost(stream, {.function = &DoNothing}));
    }
    if (can.graphs) {
      EXPECT_CODE(kInvalidArgument, device.BeginCapture(stream, CaptureMode::kRelaxed));
      EXPECT_CODE(kInvalidArgument, device.GetCaptureState(stream));
    }
  }
  for (const EventHandle event : {dead_event, EventHandle{0xDEAD'BEEF'0000'0020}}) {
    EXPECT_CODE(kInvalidArgument, device.DestroyEvent(event));
    EXPECT_CODE(kInvalidArgument, device.RecordEvent(event, good_stream.get()));
    EXPECT_CODE(kInvalidArgument, device.WaitEvent(good_stream.get(), event));
    EXPECT_CODE(kInvalidArgument, device.QueryEvent(event));
    EXPECT_CODE(kInvalidArgument, device.SynchronizeEvent(event, InTime()));
  }
  EXPECT_TRUE(context.Works());
}

KEEL_CONFORMANCE_CASE(Errors, HandlesOfAClosedDeviceAreRefused, .stale_handles = true) {
  ASSERT_VALUE(const StreamHandle stream, context.device().CreateStream({}));
  ASSERT_VALUE(const DeviceAddress memory, context.device().AllocatePlain(4_KiB));
  const DeviceId before = context.device().id();
  // Closing the device takes what it handed out with it.
  ASSERT_OK(context.Reopen());
  EXPECT_CODE(kInvalidArgument, context.device().QueryStream(stream));
  EXPECT_CODE(kInvalidArgument, context.device().FreePlain(memory));
  ASSERT_VALUE(const Stream fresh, context.NewStream());
  ASSERT_VALUE(const PlainMemory target, context.NewPlain(4_KiB));
  EXPECT_CODE(
      kInvalidArgument,
      context.device().EnqueueCopy(
          fresh.get(), {.destination = Location::On(context.device().id(), target.address()),
                        .source = Location::On(before, target.address()),
                        .size = 64_B}));
  ASSERT_VALUE(const MemoryInfo info, context.device().GetMemoryInfo());
  EXPECT_LE(info.free, info.total);
}

// "A message that names the bad argument": people read it without the source at hand.
KEEL_CONFORMANCE_CASE(Errors, MessagesNameTheBadArgument) {
  if (!context.join().names_arguments) GTEST_SKIP() << "the library's errors name no argument";
  Device& device = context.device();
  const Capabilities& can = context.capabilities();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  struct Mistake {
    Status status;
    std::vector<std::string> any_of;  // its name or its value
  };
  std::vector<Mistake> mistakes = {
      {StatusOf(device.AllocatePlain(Bytes(0))), {"size", "0"}},
      {StatusOf(device.AllocateHost(Bytes(0), {})), {"size", "0"}},
      {device.FreePlain(memory.address() + 256_B), {"address", ToString(memory.address() + 256_B)}},
      {device.EnqueueFill(stream.get(), {.destination = memory.address(), .width = 3, .count = 1}),
       {"width", "3"}},
      {device.EnqueueFill(stream.get(),
                          {.destination = memory.address() + 1_B, .width = 4, .count = 1}),
       {"destination", "address", "align", ToString(memory.address() + 1_B)}},
      {device.EnqueueFill({}, {.destination = memory.address(), .count = 1}), {"stream"}},
      {device.RecordEvent({}, stream.get()), {"event"}},
      {device.EnqueueCopy(stream.get(),
                          {.destination = Location::On(device.id(), DeviceAddress(0x1000)),
                           .source = Location::On(device.id(), memory.address()),
                           .size = 64_B}),
       {"destination", "0x1000"}},
      {device.EnqueueCopy(stream.get(),
                          {.destination = Location::On(device.id(), memory.address()),
                           .source = Location::On(static_cast<DeviceId>(77777), memory.address()),
                           .size = 64_B}),
       {"source", "77777", "device"}},
  };
  if (can.virtual_memory) {
    mistakes.push_back(
        {StatusOf(device.CreateMemory(context.granule() + 1_B, {})), {"size", "granularity"}});
    mistakes.push_back(
        {StatusOf(device.ReserveAddress(context.granule(), 3_B, {})), {"alignment"}});
    mistakes.push_back(
        {device.Unmap(DeviceAddress(0x1000), context.granule()), {"address", "0x1000", "mapp"}});
  }
  if (can.graphs) {
    mistakes.push_back({StatusOf(device.Instantiate({})), {"graph"}});
  }
  for (const Mistake& mistake : mistakes) {
    ASSERT_FALSE(mistake.status.ok());
    const std::string message(mistake.status.message());
    bool named = false;
    for (const std::string& word : mistake.any_of) named |= message.find(word) != std::string::npos;
    EXPECT_TRUE(named) << "'" << message << "' does not say '" << mistake.any_of.front() << "'";
  }
}

// A failed call changes nothing: not the memory, not what is alive, not what runs.
KEEL_CONFORMANCE_CASE(Errors, RefusalsChangeNothing) {
  InstrumentedDevice& device = context.device();
  const Capabilities& can = context.capabilities();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  const std::vector<std::byte> bytes = Pattern(4096, 1);
  ASSERT_OK(context.WriteBytes(memory.address(), bytes));
  ASSERT_VALUE(const MemoryInfo before, device.GetMemoryInfo());
  const std::size_t alive = device.Live().size();
  for (int round = 0; round < 20; ++round) {
    EXPECT_FALSE(device.AllocatePlain(Bytes(0)).ok());
    EXPECT_FALSE(device.AllocatePlain(device.info().memory * 2).ok());
    EXPECT_FALSE(device.AllocateHost(Bytes(0), {}).ok());
    EXPECT_FALSE(device.FreePlain(memory.address() + 1_B).ok());
    EXPECT_FALSE(device.DestroyStream({}).ok());
    EXPECT_FALSE(
        device.EnqueueFill(stream.get(), {.destination = memory.address(), .width = 7, .count = 9})
            .ok());
    if (can.virtual_memory) {
      EXPECT_FALSE(device.CreateMemory(context.granule() + 1_B, {}).ok());
      EXPECT_FALSE(device.ReserveAddress(Bytes(1), Bytes(0), {}).ok());
      EXPECT_FALSE(device.Map(DeviceAddress(0x10000), context.granule(), Offset(0), {}).ok());
    }
    if (can.kernels) {
      EXPECT_FALSE(device.LoadModule(ModuleSource::File("/no/such/module")).ok());
    }
  }
  EXPECT_EQ(device.Live().size(), alive);
  ASSERT_VALUE(const MemoryInfo after, device.GetMemoryInfo());
  EXPECT_EQ(after.total, before.total);
  if (device.info().simulated) {
    EXPECT_EQ(after.free, before.free);  // nobody else is on it
  }
  EXPECT_OK(stream.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsBytes(memory.address(), bytes));
}

}  // namespace
}  // namespace keel::hal::conformance
