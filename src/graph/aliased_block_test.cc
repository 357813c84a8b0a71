// Outputs that are read at another address than they are written at.
#include "graph/aliased_block.h"

#include <gmock/gmock.h>

#include "graph/graph_test.h"
#include "keel/graph/memory_budget.h"
#include "keel/hal/forwarding_device.h"
#include "keel/hal/memory.h"

namespace keel::graph {
namespace {

using ::testing::HasSubstr;

class AliasTest : public GraphTest {
 protected:
  std::int64_t Tagged() { return bench_.memory()->allocator().Stats().tag_bytes["graph:adding"]; }
  const Bytes granule_ = bench_.device().capabilities().granularity.minimum;
};

TEST_F(AliasTest, BothAddressesHaveTheSameBytesAndOneCannotBeWritten) {
  const telemetry::TagId tag = telemetry::InternTag("aliased");
  {
    const AliasedBlock block = Need(AliasedBlock::Create(*bench_.memory(), kSize, tag));
    EXPECT_NE(block.address(), block.alias());
    EXPECT_EQ(block.size(), granule_);
    bench_.Write(block.address(), Same(5));
    EXPECT_EQ(bench_.Read(block.alias()), Same(5));
    const Status refused = bench_.inner()->EnqueueFill(
        bench_.stream(), {.destination = block.alias(), .value = 1, .width = 4, .count = 1});
    EXPECT_FALSE(refused.ok());
    EXPECT_TRUE(IsOk(bench_.inner()->Health())) << "seen before anything was harmed";
    EXPECT_EQ(bench_.memory()->allocator().Stats().tag_bytes["aliased"],
              static_cast<std::int64_t>(granule_.count()));
  }
  EXPECT_EQ(bench_.memory()->allocator().Stats().tag_bytes["aliased"], 0);
  EXPECT_TRUE(bench_.device().retries().empty());
}

TEST_F(AliasTest, AHeldOutputIsReadThroughTheAlias) {
  const Adding adding = MakeAdding(Policy::kInPlace, Policy::kInPlace);
  const Bytes used = bench_.controls().used();
  const auto executable = Need(
      Executable::Create(adding.program, bench_.memory(), {.slots = 2, .alias_outputs = true}));
  for (int step = 0; step < 6; ++step) {
    const auto number = static_cast<float>(step);
    Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
    bench_.Write(Need(lease.address(adding.a)), Same(number));
    bench_.Write(Need(lease.address(adding.b)), Same(10));
    bench_.Write(Need(lease.address(adding.total)), Same(100));
    if (step == 4) bench_.device().ResetCounts();
    ASSERT_TRUE(IsOk(lease.Launch(Soon())));
    if (step == 4) {
      EXPECT_EQ(bench_.device().calls(), 1u) << "the launch";
    }
    const HeldOutput sum = Need(lease.Hold(adding.sum));
    const HeldOutput total = Need(lease.Hold(adding.total));
    EXPECT_NE(sum.address(), Need(lease.address(adding.sum)));
    EXPECT_EQ(bench_.Read(sum.address()), Same(number + 10));
    EXPECT_EQ(bench_.Read(Need(lease.address(adding.sum))), Same(number + 10));
    EXPECT_EQ(bench_.Read(total.address()), Same(100 + 2 * (number + 10)));
    EXPECT_FALSE(bench_.inner()
                     ->EnqueueFill(bench_.stream(), {.destination = total.address(), .count = 1})
                     .ok());
  }
  // Two small outputs share a handle; inputs are where they always were.
  EXPECT_GE(executable->stats().slot_bytes, 2 * granule_);
  EXPECT_LT(executable->stats().slot_bytes, 3 * granule_);
  EXPECT_GE(Tagged(), static_cast<std::int64_t>(2 * granule_.count()));
  ASSERT_TRUE(IsOk(executable->Close(Soon())));
  EXPECT_EQ(Tagged(), 0);
  EXPECT_EQ(executable->stats().slot_bytes, 0_B);
  EXPECT_EQ(bench_.memory()->allocator().Check(), "");
  ASSERT_TRUE(IsOk(bench_.memory()->allocator().EmptyCache()));
  EXPECT_EQ(bench_.controls().used(), used);
}

TEST_F(AliasTest, TheLimitOfTheAllocatorHolds) {
  const Adding adding = MakeAdding(Policy::kInPlace, Policy::kInPlace, BindingAccess::kResident);
  const auto executable = Need(
      Executable::Create(adding.program, bench_.memory(), {.slots = 4, .alias_outputs = true}));
  const Buffer total = bench_.Filled(0);
  ASSERT_TRUE(IsOk(executable->Bind(adding.total, total)));
  const Bytes all = bench_.memory()->allocator().limit();
  bench_.memory()->allocator().SetLimit(bench_.memory()->allocator().reserved() + 3 * granule_);
  EXPECT_EQ(executable->Acquire(bench_.stream(), Soon()).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(Tagged(), 0);
  bench_.memory()->allocator().SetLimit(all);
  EXPECT_TRUE(IsOk(RunStep(*executable, bench_.stream())));
}

TEST_F(AliasTest, TheBudgetReckonsWithIt) {
  const Adding adding = MakeAdding(Policy::kInPlace, Policy::kInPlace, BindingAccess::kResident);
  const auto budget = std::make_shared<MemoryBudget>(2 * granule_);
  const auto executable = Need(Executable::Create(
      adding.program, bench_.memory(), {.slots = 2, .budget = budget, .alias_outputs = true}));
  ASSERT_TRUE(IsOk(executable->Bind(adding.total, bench_.Filled(0))));
  EXPECT_EQ(executable->Acquire(bench_.stream(), Soon()).status().code(),
            StatusCode::kResourceExhausted);
}

// R4: a peer reads what is held, and cannot write it; one that can have no access is left out.
TEST_F(AliasTest, PeersReadAHeldOutputAndCannotWriteIt) {
  for (const bool peers : {true, false}) {
    const auto driver =
        Need(sim::CreateSimDriver({.devices = 2, .memory = 1_GiB, .peers = peers, .arena = 8_GiB}));
    Bench bench(Need(driver->Open(0)));
    Bench peer(Need(driver->Open(1)));
    ASSERT_TRUE(IsOk(bench.memory()->allocator().AddPeer(peer.inner())));
    ProgramBuilder builder("filling");
    const BindingId y = builder.Bind(
        {.name = "y", .size = kSize, .access = BindingAccess::kOut, .policy = Policy::kInPlace});
    builder.Fill({y, hal::Access::kWrite}, 0x3f800000, 4);
    const auto executable = Need(Executable::Create(
        Need(std::move(builder).Build()), bench.memory(), {.slots = 1, .alias_outputs = true}));
    Lease lease = Need(executable->Acquire(bench.stream(), Soon()));
    ASSERT_TRUE(IsOk(lease.Launch(Soon())));
    ASSERT_TRUE(IsOk(lease.Wait(Soon())));
    const HeldOutput held = Need(lease.Hold(y));
    EXPECT_EQ(bench.Read(held.address()), Same(1));
    // By a kernel of the peer's: a copy is the driver's and needs no access.
    const Buffer twice = peer.Filled(-1);
    const std::array arguments = {
        hal::KernelArg::In(held.address(), kSize), hal::KernelArg::In(held.address(), kSize),
        hal::KernelArg::Out(twice.address, kSize), hal::KernelArg::Value(std::uint64_t{kFloats})};
    if (!peers) {
      const auto whole = Need(memory::WholeMemory::Create(bench.memory()->allocator(), kSize));
      const std::vector<hal::AccessGrant> grants = whole.GrantsFor(hal::Access::kRead);
      ASSERT_EQ(grants.size(), 1u);
      EXPECT_EQ(grants.front().device, bench.device().id());
      continue;
    }
    ASSERT_TRUE(IsOk(peer.inner()->LaunchKernel(
        peer.stream(),
        {.kernel = peer.Kernel(hal::kernels::kAdd), .dims = kDims, .args = arguments})));
    EXPECT_EQ(peer.Read(twice), Same(2));
    EXPECT_FALSE(
        peer.inner()
            ->EnqueueFill(peer.stream(),
                          {.destination = held.address(), .value = 0, .width = 4, .count = 1})
            .ok());
    EXPECT_EQ(bench.Read(held.address()), Same(1));
    EXPECT_TRUE(IsOk(peer.inner()->Health()));
  }
}

class PlainOnly : public hal::ForwardingDevice {
 public:
  explicit PlainOnly(std::shared_ptr<hal::Device> device)
      : ForwardingDevice(std::move(device)), can_(ForwardingDevice::capabilities()) {
    can_.virtual_memory = false;
    can_.granularity = {};
  }
  const hal::Capabilities& capabilities() const override { return can_; }

 private:
  hal::Capabilities can_;
};

TEST_F(AliasTest, ADeviceWithoutVirtualMemoryIsNamed) {
  const auto memory =
      Need(memory::DeviceMemory::Create(std::make_shared<PlainOnly>(bench_.inner()), {}));
  const Adding adding = MakeAdding(Policy::kInPlace, Policy::kInPlace);
  const Status status =
      Executable::Create(adding.program, memory, {.alias_outputs = true}).status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(status.ToString(), HasSubstr("alias_outputs needs virtual memory"));
}

}  // namespace
}  // namespace keel::graph
