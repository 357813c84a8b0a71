// Many threads at once.

#include <array>
#include <atomic>
#include <barrier>
#include <thread>

#include "hal/conformance/context.h"

namespace keel::hal::conformance {
namespace {

constexpr int kThreads = 6;

// Runs `body(thread)` on threads that start together.
template <class Body>
void OnThreads(int count, const Body& body) {
  std::barrier start(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      body(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

KEEL_CONFORMANCE_CASE(Threads, WorkSideBySide) {
  Device& device = context.device();
  OnThreads(kThreads, [&](int thread) {
    ASSERT_VALUE(const Stream stream, context.NewStream());
    for (std::uint32_t round = 0; round < 20; ++round) {
      ASSERT_VALUE(PlainMemory memory, context.NewPlain(16_KiB));
      const std::uint32_t value = static_cast<std::uint32_t>(thread) * 1000 + round;
      ASSERT_OK(device.EnqueueFill(
          stream.get(),
          {.destination = memory.address(), .value = value, .width = 4, .count = 4096}));
      std::vector<std::uint32_t> seen(4096);
      ASSERT_OK(
          device.EnqueueCopy(stream.get(), {.destination = Location::Host(seen.data()),
                                            .source = Location::On(device.id(), memory.address()),
                                            .size = 16_KiB}));
      ASSERT_EQ(seen, std::vector<std::uint32_t>(4096, value));
      ASSERT_OK(memory.Close());
    }
  });
}

// A15: there is no current device that one thread could leave behind for the next call.
KEEL_CONFORMANCE_CASE(Threads, HitTheDeviceTheyName, .devices = 2, .all_devices = true) {
  const int devices = context.device_count();
  std::vector<PlainMemory> slots;  // one word of every thread, on every device
  for (int i = 0; i < devices; ++i) {
    ASSERT_VALUE(PlainMemory memory, context.NewPlain(Bytes(kThreads * 4), i));
    ASSERT_OK(context.Write(memory.address(), std::vector<std::uint32_t>(kThreads, 0), i));
    slots.push_back(std::move(memory));
  }
  OnThreads(kThreads, [&](int thread) {
    std::vector<Stream> streams;
    for (int i = 0; i < devices; ++i) {
      ASSERT_VALUE(Stream stream, context.NewStream(i));
      streams.push_back(std::move(stream));
    }
    for (int round = 0; round < 10; ++round) {
      for (int step = 0; step < devices; ++step) {
        const int i = (step + thread + round) % devices;
        Device& device = context.device(i);
        const auto at = static_cast<std::size_t>(i);
        const std::uint32_t value = static_cast<std::uint32_t>(i) * 100000 +
                                    static_cast<std::uint32_t>(thread * 100 + round);
        const DeviceAddress word =
            slots[at].address() + Bytes(static_cast<std::uint64_t>(thread) * 4);
        ASSERT_OK(device.EnqueueFill(
            streams[at].get(), {.destination = word, .value = value, .width = 4, .count = 1}));
        // Calls for other devices in between.
        ASSERT_OK(context.device((i + 1) % devices).GetMemoryInfo());
        std::uint32_t seen = 0;
        ASSERT_OK(device.EnqueueCopy(streams[at].get(), {.destination = Location::Host(&seen),
                                                         .source = Location::On(device.id(), word),
                                                         .size = 4_B}));
        ASSERT_EQ(seen, value);
      }
    }
  });
  for (int i = 0; i < devices; ++i) {
    ASSERT_VALUE(
        const std::vector<std::uint32_t> seen,
        context.Read<std::uint32_t>(slots[static_cast<std::size_t>(i)].address(), kThreads, i));
    for (const std::uint32_t value : seen) EXPECT_EQ(value / 100000, static_cast<std::uint32_t>(i));
  }
}

KEEL_CONFORMANCE_CASE(Threads, ShareOneStream, .needs = {&Capabilities::host_calls}) {
  constexpr int kCalls = 100;
  ASSERT_VALUE(const Stream stream, context.NewStream());
  std::atomic<int> count{0};
  OnThreads(kThreads, [&](int) {
    for (int i = 0; i < kCalls; ++i) {
      ASSERT_OK(context.device().CallHost(
          stream.get(), {.function = [](void* data) { ++*static_cast<std::atomic<int>*>(data); },
                         .data = &count}));
    }
  });
  ASSERT_OK(stream.Synchronize(InTime()));
  EXPECT_EQ(count.load(), kThreads * kCalls);
}

KEEL_CONFORMANCE_CASE(Threads, CreateAndDestroy, .all_devices = true) {
  OnThreads(kThreads, [&](int thread) {
    const int i = thread % context.device_count();
    Device& device = context.device(i);
    for (int round = 0; round < 20; ++round) {
      ASSERT_VALUE(Stream stream, context.NewStream(i));
      ASSERT_VALUE(Event event, context.NewEvent(i));
      ASSERT_OK(event.Record(stream.get()));
      ASSERT_OK(event.Synchronize(InTime()));
      if (context.capabilities(i).graphs) {
        ASSERT_VALUE(Graph graph, Graph::Create(context.shared(i)));
        ASSERT_OK(device.AddNode(graph.get(), {}, EmptyNode{}));
        ASSERT_VALUE(GraphExec exec, GraphExec::Create(graph));
        ASSERT_OK(exec.Launch(stream.get()));
        ASSERT_OK(exec.Close());
        ASSERT_OK(graph.Close());
      }
      ASSERT_OK(event.Close());
      ASSERT_OK(stream.Close());
    }
  });
}

KEEL_CONFORMANCE_CASE(Threads, MapAndUnmapWhileOthersRun,
                      .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  const Bytes granule = context.granule();
  OnThreads(kThreads, [&](int thread) {
    const AccessGrant grant{device.id(), Access::kReadWrite};
    ASSERT_VALUE(const Stream stream, context.NewStream());
    ASSERT_VALUE(AddressRange range, AddressRange::Create(context.shared(), granule));
    ASSERT_VALUE(PhysicalMemory a, PhysicalMemory::Create(context.shared(), granule));
    ASSERT_VALUE(PhysicalMemory b, PhysicalMemory::Create(context.shared(), granule));
    for (std::uint32_t round = 0; round < 20; ++round) {
      const PhysicalMemory& memory = round % 2 == 0 ? a : b;
      ASSERT_VALUE(Mapping mapping, Mapping::Create(range, Offset(0), memory, {&grant, 1}));
      if (round >= 2) {
        // What this memory got two rounds ago is still in it.
        std::uint32_t seen = 0;
        ASSERT_OK(device.EnqueueCopy(stream.get(),
                                     {.destination = Location::Host(&seen),
                                      .source = Location::On(device.id(), mapping.address()),
                                      .size = 4_B}));
        ASSERT_EQ(seen, static_cast<std::uint32_t>(thread) * 1000 + round - 2);
      }
      ASSERT_OK(device.EnqueueFill(stream.get(),
                                   {.destination = mapping.address(),
                                    .value = static_cast<std::uint32_t>(thread) * 1000 + round,
                                    .width = 4,
                                    .count = granule.count() / 4}));
      ASSERT_OK(stream.Synchronize(InTime()));
      ASSERT_OK(mapping.Close());
    }
  });
}

// A3: two threads at the limit never get more than there is.
KEEL_CONFORMANCE_CASE(Threads, CannotExceedTheCapacityTogether) {
  Device& device = context.device();
  ASSERT_VALUE(const MemoryInfo before, device.GetMemoryInfo());
  const Bytes chunk = AlignDown(before.free / 20, 2_MiB);
  ASSERT_FALSE(chunk.empty());
  for (int round = 0; round < 3; ++round) {
    std::atomic<int> got{0};
    std::array<std::vector<PlainMemory>, kThreads> held;
    OnThreads(kThreads, [&](int thread) {
      while (got.load() < 100) {
        Result<PlainMemory> memory = context.NewPlain(chunk);
        if (!memory.ok()) {
          EXPECT_CODE(kResourceExhausted, memory);
          return;
        }
        ++got;
        held[static_cast<std::size_t>(thread)].push_back(std::move(*memory));
      }
    });
    EXPECT_LE(chunk * static_cast<std::uint64_t>(got.load()), before.free);
    EXPECT_GE(got.load(), 19);
  }
}

KEEL_CONFORMANCE_CASE(Threads, EndAfterUsingTheirDefaultStream) {
  Device& device = context.device();
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(Bytes(kThreads * 4)));
  for (int round = 0; round < 5; ++round) {
    OnThreads(kThreads, [&](int thread) {
      ASSERT_VALUE(const StreamHandle own, device.GetDefaultStream(DefaultStream::kPerThread));
      // Not waited for: the work of a thread that has ended still runs.
      ASSERT_OK(device.EnqueueFill(
          own, {.destination = memory.address() + Bytes(static_cast<std::uint64_t>(thread) * 4),
                .value = static_cast<std::uint32_t>(round),
                .width = 4,
                .count = 1}));
    });
    ASSERT_OK(device.Synchronize(InTime()));
    EXPECT_TRUE(context.HoldsWord(memory.address(), kThreads, static_cast<std::uint32_t>(round)));
  }
}

KEEL_CONFORMANCE_CASE(Threads, RecordTheirOwnGraphs, .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  OnThreads(kThreads, [&](int thread) {
    ASSERT_VALUE(const Stream stream, context.NewStream());
    ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
    for (std::uint32_t round = 0; round < 10; ++round) {
      const std::uint32_t value = static_cast<std::uint32_t>(thread) * 100 + round;
      ASSERT_VALUE(Capture capture, Capture::Begin(context.shared(), stream.get()));
      ASSERT_OK(device.EnqueueFill(
          stream.get(),
          {.destination = memory.address(), .value = value, .width = 4, .count = 1024}));
      ASSERT_VALUE(Graph graph, capture.End());
      ASSERT_VALUE(const std::vector<NodeInfo> nodes, device.GetNodes(graph.get()));
      ASSERT_EQ(nodes.size(), 1u);
      ASSERT_VALUE(GraphExec exec, GraphExec::Create(graph));
      ASSERT_OK(exec.Launch(stream.get()));
      ASSERT_OK(stream.Synchronize(InTime()));
      ASSERT_TRUE(context.HoldsWord(memory.address(), 1024, value));
    }
  });
}

}  // namespace
}  // namespace keel::hal::conformance
