#include "hal/fault_scenario_test.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "keel/hal/event.h"
#include "keel/hal/graph.h"
#include "keel/hal/memory.h"
#include "keel/hal/module.h"
#include "keel/hal/standard_kernels.h"
#include "keel/hal/stream.h"

namespace keel::hal {
namespace {

constexpr Bytes kPage = 2_MiB;
constexpr std::uint64_t kWords = 1024;
constexpr Bytes kExtent(kWords * sizeof(std::uint32_t));

Deadline Soon() { return Deadline::After(std::chrono::seconds(60)); }

// A result that is wrong, in a run where nothing failed; never the injected error.
Status Check(bool right, std::string what) {
  return right ? OkStatus() : FailedPrecondition("wrong: " + std::move(what));
}

// Work that is queued still uses the memory and the variables of a scope that an error leaves.
// Waits on the device inside the wrapper, where nothing is counted and no rule fails it; below the
// device a call of this very wait may be the one that fails, once.
class WaitsForWork {
 public:
  explicit WaitsForWork(Device& device) : device_(device.Innermost()) {}
  WaitsForWork(const WaitsForWork&) = delete;
  WaitsForWork& operator=(const WaitsForWork&) = delete;
  ~WaitsForWork() {
    Status status = device_.Synchronize(Soon());
    if (!status.ok()) status = device_.Synchronize(Soon());
    EXPECT_TRUE(status.ok()) << status.ToString();
  }

 private:
  Device& device_;
};

struct PeerAccessTraits {
  using Handle = DeviceId;
  static Status GiveBack(Device& device, const Handle& peer) {
    return device.DisablePeerAccess(peer);
  }
  static std::string Describe(const Handle&) { return "DisablePeerAccess"; }
};
using PeerAccess = OwnedHandle<PeerAccessTraits>;

Status UseMemory(const Devices& on) {
  KEEL_ASSIGN(const MemoryInfo info, on.device->GetMemoryInfo());
  KEEL_TRY(Check(info.total >= info.free, "more free than there is"));
  KEEL_ASSIGN(const PlainMemory plain, PlainMemory::Create(on.device, 3_MiB));

  Device* const peers[] = {on.peer.get()};
  KEEL_ASSIGN(const std::vector<AccessGrant> grants, GrantsForPeers(*on.device, peers));
  KEEL_ASSIGN(MappedMemory mapped,
              MappedMemory::Create(on.device, kPage, grants, {.exportable = true}));
  KEEL_ASSIGN(const Access peers_access, on.device->GetAccess(mapped.address(), on.peer->id()));
  KEEL_TRY(Check(peers_access == Access::kReadWrite, "the peer's access"));

  KEEL_ASSIGN(const UniqueFd descriptor, mapped.memory().Export());
  KEEL_ASSIGN(PhysicalMemory imported, PhysicalMemory::Import(on.device, descriptor.get(), kPage));
  KEEL_ASSIGN(AddressRange range, AddressRange::Create(on.device, 2 * kPage));
  KEEL_ASSIGN(Mapping alias, Mapping::Create(range, Offset(kPage.count()), imported, grants));
  // Once through Close, once through the destructors.
  KEEL_TRY(alias.Close());
  KEEL_TRY(range.Close());
  KEEL_TRY(imported.Close());
  return OkStatus();
}

Status UsePeer(const Devices& on) {
  KEEL_ASSIGN(const bool can, on.device->CanAccessPeer(on.peer->id()));
  KEEL_TRY(Check(can, "peers cannot access each other"));
  KEEL_TRY(on.device->EnablePeerAccess(on.peer->id()));
  PeerAccess access(on.device, on.peer->id());
  KEEL_ASSIGN(const PlainMemory there, PlainMemory::Create(on.peer, kExtent));
  KEEL_ASSIGN(const PlainMemory here, PlainMemory::Create(on.device, kExtent));
  KEEL_ASSIGN(const Stream stream, Stream::Default(on.device, DefaultStream::kPerThread));
  const WaitsForWork waits(*on.device);
  KEEL_TRY(on.device->EnqueueCopy(stream.get(),
                                  {.destination = Location::On(on.device->id(), here.address()),
                                   .source = Location::On(on.peer->id(), there.address()),
                                   .size = kExtent}));
  KEEL_TRY(stream.Synchronize(Soon()));
  return access.Close();
}

Status UseStreams(const Devices& on) {
  alignas(4096) static std::array<std::uint32_t, kWords> registered;
  std::atomic<int> called{0};
  KEEL_ASSIGN(const HostMemory host, HostMemory::Create(on.device, kExtent));
  auto* const words = static_cast<volatile std::uint64_t*>(host.data());
  *words = 0;
  KEEL_ASSIGN(const DeviceAddress flag, host.address());
  KEEL_ASSIGN(const HostRegistration registration,
              HostRegistration::Create(on.device, registered.data(), kExtent));
  KEEL_ASSIGN(const PlainMemory memory, PlainMemory::Create(on.device, kExtent));
  KEEL_ASSIGN(Stream first, Stream::Create(on.device));
  KEEL_ASSIGN(const Stream own, Stream::Create(on.device, {.priority = -1}));
  KEEL_ASSIGN(const Stream second, Stream::Borrow(on.device, own.get().value));
  KEEL_ASSIGN(Event start, Event::Create(on.device, {.timing = true}));
  KEEL_ASSIGN(const Event end, Event::Create(on.device, {.timing = true}));
  const WaitsForWork waits(*on.device);

  KEEL_TRY(start.Record(first.get()));
  KEEL_TRY(on.device->EnqueueFill(
      first.get(),
      {.destination = memory.address(), .value = 0x5aa5c33c, .width = 4, .count = kWords}));
  KEEL_TRY(end.Record(first.get()));
  KEEL_TRY(on.device->WaitEvent(second.get(), end.get()));
  KEEL_TRY(on.device->EnqueueCopy(second.get(),
                                  {.destination = Location::Host(registered.data()),
                                   .source = Location::On(on.device->id(), memory.address()),
                                   .size = kExtent}));
  KEEL_TRY(on.device->WriteValue(second.get(), {.destination = flag, .value = 7}));
  KEEL_TRY(on.device->WaitValue(first.get(), {.source = flag, .value = 7}));
  KEEL_TRY(on.device->CallHost(
      first.get(),
      {.function = [](void* data) { ++*static_cast<std::atomic<int>*>(data); }, .data = &called}));
  KEEL_TRY(first.Synchronize(Soon()));
  KEEL_TRY(Check(called == 1, "the host function"));
  KEEL_TRY(Check(registered.front() == 0x5aa5c33c && registered.back() == 0x5aa5c33c, "the copy"));

  KEEL_TRY(end.Synchronize(Soon()));
  KEEL_ASSIGN(const Completion event_done, end.Query());
  KEEL_ASSIGN(const Completion stream_done, first.Query());
  KEEL_TRY(Check(event_done == Completion::kDone && stream_done == Completion::kDone, "done"));
  KEEL_ASSIGN(const double elapsed, on.device->ElapsedMilliseconds(start.get(), end.get()));
  KEEL_TRY(Check(elapsed >= 0, "the time"));
  KEEL_TRY(on.device->Synchronize(Soon()));
  KEEL_TRY(start.Close());
  return first.Close();
}

Status UseGraphs(const Devices& on) {
  KEEL_ASSIGN(const MappedMemory memory, MappedMemory::Create(on.device, kPage));
  KEEL_ASSIGN(const HostMemory host, HostMemory::Create(on.device, kExtent));
  KEEL_ASSIGN(const Module module, Module::LoadStandard(on.device));
  KEEL_ASSIGN(const KernelHandle kernel, module.Find(kernels::kFill));
  KEEL_ASSIGN(const Stream stream, Stream::Create(on.device));
  const WaitsForWork waits(*on.device);

  std::array<KernelArg, 3> args = {KernelArg::Out(memory.address(), kExtent),
                                   KernelArg::Value(std::uint32_t{1}), KernelArg::Value(kWords)};
  const KernelLaunch launch{.kernel = kernel, .dims = {}, .args = args};
  const auto run = [&](const GraphExec& exec, std::uint32_t expected) -> Status {
    KEEL_TRY(exec.Launch(stream.get()));
    KEEL_TRY(on.device->EnqueueCopy(stream.get(),
                                    {.destination = Location::Host(host.data()),
                                     .source = Location::On(on.device->id(), memory.address()),
                                     .size = kExtent}));
    KEEL_TRY(stream.Synchronize(Soon()));
    const auto* const words = static_cast<const std::uint32_t*>(host.data());
    return Check(words[0] == expected && words[kWords - 1] == expected,
                 "the graph's result " + std::to_string(expected));
  };

  KEEL_ASSIGN(Capture capture, Capture::Begin(on.device, stream.get()));
  KEEL_TRY(on.device->LaunchKernel(stream.get(), launch));
  KEEL_ASSIGN(const CaptureState state, on.device->GetCaptureState(stream.get()));
  KEEL_TRY(Check(state == CaptureState::kActive, "the capture's state"));
  KEEL_ASSIGN(const std::vector<NodeHandle> frontier, on.device->GetCaptureFrontier(stream.get()));
  KEEL_TRY(Check(frontier.size() == 1, "the frontier"));
  KEEL_ASSIGN(const Graph captured, capture.End());
  KEEL_ASSIGN(const std::vector<NodeInfo> nodes, on.device->GetNodes(captured.get()));
  KEEL_TRY(Check(nodes.size() == 1 && nodes[0].node == frontier[0], "the nodes"));
  KEEL_ASSIGN(const GraphExec exec, GraphExec::Create(captured));
  KEEL_TRY(run(exec, 1));

  args[1] = KernelArg::Value(std::uint32_t{2});
  KEEL_ASSIGN(Graph built, Graph::Create(on.device));
  KEEL_TRY(on.device->AddNode(built.get(), {}, launch).status());
  KEEL_ASSIGN(const UpdateReport report, on.device->UpdateExec(exec.get(), built.get()));
  KEEL_TRY(Check(report.updated, "the update: " + report.reason));
  KEEL_TRY(run(exec, 2));
  KEEL_TRY(built.Close());

  args[1] = KernelArg::Value(std::uint32_t{3});
  KEEL_TRY(on.device->SetNodeParams(exec.get(), frontier[0], launch));
  KEEL_TRY(run(exec, 3));

  // A recording that is dropped.
  KEEL_TRY(Capture::Begin(on.device, stream.get()).status());
  return OkStatus();
}

}  // namespace

Status UseEverything(const Devices& on) {
  KEEL_TRY(UseMemory(on));
  KEEL_TRY(UsePeer(on));
  KEEL_TRY(UseStreams(on));
  return UseGraphs(on);
}

Status OwnOneOfEach(const Devices& on) {
  alignas(4096) static std::array<std::byte, 4096> buffer;
  KEEL_TRY(on.device->EnablePeerAccess(on.peer->id()));
  const PeerAccess access(on.device, on.peer->id());
  KEEL_ASSIGN(const PlainMemory plain, PlainMemory::Create(on.device, 1_MiB));
  KEEL_ASSIGN(const MappedMemory mapped, MappedMemory::Create(on.device, kPage));
  KEEL_ASSIGN(const HostMemory host, HostMemory::Create(on.device, 1_MiB));
  KEEL_ASSIGN(const HostRegistration registration,
              HostRegistration::Create(on.device, buffer.data(), Bytes(buffer.size())));
  KEEL_ASSIGN(const Module module, Module::LoadStandard(on.device));
  KEEL_ASSIGN(const Stream stream, Stream::Create(on.device));
  KEEL_ASSIGN(const Event event, Event::Create(on.device));
  KEEL_ASSIGN(const Graph graph, Graph::Create(on.device));
  KEEL_ASSIGN(const GraphExec exec, GraphExec::Create(graph));
  KEEL_ASSIGN(const Capture capture, Capture::Begin(on.device, stream.get()));
  return OkStatus();
}

// Each primitive of the scenario fails once.
void SweepPrimitives(const std::shared_ptr<InstrumentedDevice>& device,
                     const std::shared_ptr<Device>& peer,
                     const std::function<void()>& expect_given_back) {
  const Devices on{device, peer};
  const Status before = UseEverything(on);
  ASSERT_TRUE(before.ok()) << before.ToString();
  const std::uint64_t calls = device->calls();
  std::array<std::uint64_t, kPrimitiveCount> clean{};
  for (std::size_t i = 0; i < kPrimitiveCount; ++i) {
    clean[i] = device->calls(static_cast<Primitive>(i));
  }

  for (std::uint64_t k = 1; k <= calls && !testing::Test::HasFailure(); ++k) {
    device->ClearRules();
    device->ResetCounts();
    device->FailNth(k, Internal("injected"));
    const Status status = UseEverything(on);
    const std::optional<Primitive> failed = device->failed();
    ASSERT_TRUE(failed.has_value()) << "call " << k;
    SCOPED_TRACE("call " + std::to_string(k) + ", " + std::string(PrimitiveName(*failed)));
    if (status.ok()) {
      // Only a destructor has nobody to tell: then the call is on the list, or was there and was
      // made again.
      const std::uint64_t made = device->calls(*failed);
      EXPECT_TRUE(!device->retries().empty() ||
                  made == clean[static_cast<std::size_t>(*failed)] + 1)
          << "swallowed";
    } else {
      EXPECT_EQ(status.ToString(), "INTERNAL: injected");
    }
    const Status drained = device->retries().Drain();
    EXPECT_TRUE(drained.ok()) << drained.ToString();
    expect_given_back();

    device->ClearRules();
    const Status after = UseEverything(on);
    EXPECT_TRUE(after.ok()) << "after the failure: " << after.ToString();
    expect_given_back();
  }
}

}  // namespace keel::hal
