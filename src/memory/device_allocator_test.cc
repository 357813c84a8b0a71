// The contract of DeviceAllocator, point by point: what is handed out, to whom and when again.
#include "memory/device_allocator_test.h"

#include <array>
#include <atomic>
#include <set>
#include <thread>

#include "base/soon_test.h"
#include "keel/hal/memory.h"

namespace keel::memory {
namespace {

using telemetry::EventAction;

constexpr std::array kSizes{1_B, 512_B, 100_KiB, 1_MiB, 3_MiB, 40_MiB};

// --- Reuse in the order of streams ------------------------------------------------------------

TEST_P(DeviceAllocatorTest, ABlockIsReusedOnItsStreamAtOnce) {
  const auto allocator = Make();
  const HeldStream held = Hold(s1());
  for (const Bytes size : kSizes) {
    SCOPED_TRACE(ToString(size));
    const DeviceAddress address = Need(allocator->Allocate(size, s1()));
    ASSERT_TRUE(IsOk(Fill(address, size, 1, s1())));
    const Bytes reserved = allocator->reserved();
    ASSERT_TRUE(IsOk(allocator->Free(address)));
    EXPECT_EQ(Need(allocator->Allocate(size, s1())), address);
    EXPECT_EQ(allocator->reserved(), reserved);
  }
  EXPECT_EQ(allocator->Check(), "");
}

// A2
TEST_P(DeviceAllocatorTest, MemoryIsNotReusedOnAnotherStreamWhileWorkIsPending) {
  const auto allocator = Make();
  for (const Bytes size : {64_KiB, 8_MiB}) {
    SCOPED_TRACE(ToString(size));
    ASSERT_TRUE(IsOk(allocator->EmptyCache()));
    HeldStream held = Hold(s1());
    const DeviceAddress first = Need(allocator->Allocate(size, s1()));
    ASSERT_TRUE(IsOk(Fill(first, size, 1, s1())));
    ASSERT_TRUE(IsOk(allocator->Free(first)));
    const DeviceAddress second = Need(allocator->Allocate(size, s2()));
    ASSERT_TRUE(IsOk(Fill(second, size, 2, s2())));
    ASSERT_TRUE(IsOk(second_.Synchronize()));
    held.Release();
    ASSERT_TRUE(IsOk(first_.Synchronize()));
    EXPECT_TRUE(Holds(second, size, 2, s2()));
    ASSERT_TRUE(IsOk(allocator->Free(second)));
  }
  EXPECT_TRUE(IsOk(device_->Health()));
}

TEST_P(DeviceAllocatorTest, MemoryIsReusedOnAnotherStreamOnceTheWorkIsDone) {
  const auto allocator = Make();
  allocator->SetLimit(32_MiB);
  const DeviceAddress first = Need(allocator->Allocate(32_MiB, s1()));
  ASSERT_TRUE(IsOk(Fill(first, 32_MiB, 1, s1())));
  ASSERT_TRUE(IsOk(allocator->Free(first)));
  const DeviceAddress second = Need(allocator->Allocate(32_MiB, s2()));
  ASSERT_TRUE(IsOk(Fill(second, 32_MiB, 2, s2())));
  EXPECT_TRUE(Holds(second, 32_MiB, 2, s2()));
  EXPECT_EQ(allocator->reserved(), 32_MiB);
  EXPECT_EQ(allocator->Check(), "");
}

// A2
TEST_P(DeviceAllocatorTest, RecordUseKeepsABlockUntilThatStreamIsDone) {
  const auto allocator = Make();
  for (const Bytes size : {64_KiB, 8_MiB}) {
    SCOPED_TRACE(ToString(size));
    const DeviceAddress shared = Need(allocator->Allocate(size, s1()));
    HeldStream held = Hold(s2());
    ASSERT_TRUE(IsOk(Fill(shared, size, 7, s2())));
    ASSERT_TRUE(IsOk(allocator->RecordUse(shared, s2())));
    ASSERT_TRUE(IsOk(allocator->RecordUse(shared, s2())));
    ASSERT_TRUE(IsOk(allocator->Free(shared)));
    telemetry::MemoryStats stats = allocator->Stats();
    EXPECT_EQ(stats.pending_frees.current, 1);
    EXPECT_EQ(stats.allocation.all.current, 0);
    EXPECT_EQ(stats.active.all.current, 1);
    EXPECT_EQ(allocator->Free(shared).code(), StatusCode::kInvalidArgument);
    std::vector<DeviceAddress> others;
    for (int i = 0; i < 40; ++i) {
      others.push_back(Need(allocator->Allocate(size, s1())));
      EXPECT_NE(others.back(), shared);
    }
    held.Release();
    ASSERT_TRUE(IsOk(second_.Synchronize()));
    bool reused = false;
    for (int i = 0; i < 40 && !reused; ++i) {
      others.push_back(Need(allocator->Allocate(size, s1())));
      reused = others.back() == shared;
    }
    EXPECT_TRUE(reused);
    stats = allocator->Stats();
    EXPECT_EQ(stats.pending_frees.current, 0);
    EXPECT_EQ(stats.pending_free_bytes.current, 0);
    EXPECT_EQ(stats.active.all.current, stats.allocation.all.current);
    for (const DeviceAddress each : others) ASSERT_TRUE(IsOk(allocator->Free(each)));
    EXPECT_EQ(allocator->Check(), "");
  }
}

TEST_P(DeviceAllocatorTest, ABlockWaitsForEveryStreamThatUsesIt) {
  const hal::Stream third = Need(hal::Stream::Create(inner_));
  const auto allocator = Make();
  const DeviceAddress shared = Need(allocator->Allocate(4_MiB, s1()));
  HeldStream one = Hold(s2());
  HeldStream two = Hold(third.get());
  ASSERT_TRUE(IsOk(allocator->RecordUse(shared, s2())));
  ASSERT_TRUE(IsOk(allocator->RecordUse(shared, third.get())));
  ASSERT_TRUE(IsOk(allocator->RecordUse(shared, s1())));  // its own: nothing to wait for
  ASSERT_TRUE(IsOk(allocator->Free(shared)));
  one.Release();
  ASSERT_TRUE(IsOk(second_.Synchronize()));
  EXPECT_NE(Need(allocator->Allocate(4_MiB, s1())), shared);
  EXPECT_EQ(allocator->Stats().pending_frees.current, 1);
  two.Release();
  ASSERT_TRUE(IsOk(third.Synchronize()));
  ASSERT_TRUE(IsOk(allocator->Trim(1_GiB)));
  EXPECT_EQ(allocator->Stats().pending_frees.current, 0);
}

// What a thread remembers of a stream is no longer true when the stream was forgotten.
TEST_P(DeviceAllocatorTest, AStreamWithTheHandleOfAForgottenOneIsRecordedAnew) {
  const auto allocator = Make();
  const DeviceAddress first = Need(allocator->Allocate(4_MiB, s1()));
  ASSERT_TRUE(IsOk(allocator->RecordUse(first, s2())));
  ASSERT_TRUE(IsOk(allocator->Free(first)));
  ASSERT_TRUE(IsOk(allocator->ForgetStream(s2())));
  const DeviceAddress shared = Need(allocator->Allocate(4_MiB, s1()));
  HeldStream held = Hold(s2());
  ASSERT_TRUE(IsOk(Fill(shared, 4_MiB, 1, s2())));
  ASSERT_TRUE(IsOk(allocator->RecordUse(shared, s2())));
  ASSERT_TRUE(IsOk(allocator->Free(shared)));
  // More than there are holes for: what is pending is looked at.
  for (int i = 0; i < 16; ++i) EXPECT_NE(Need(allocator->Allocate(4_MiB, s1())), shared);
  EXPECT_EQ(allocator->Stats().pending_frees.current, 1);
  held.Release();
}

// A12
TEST_P(DeviceAllocatorTest, AnEventsErrorIsNotTakenForNotReady) {
  const auto allocator = Make();
  const DeviceAddress shared = Need(allocator->Allocate(4_MiB, s1()));
  ASSERT_TRUE(IsOk(allocator->RecordUse(shared, s2())));
  device_->FailNth(Primitive::kQueryEvent, 1, Internal("injected"));
  ASSERT_TRUE(IsOk(allocator->Free(shared)));
  ASSERT_TRUE(IsOk(second_.Synchronize()));
  // What is asked for here needs new memory: that is when the event is looked at.
  Need(allocator->Allocate(40_MiB, s1()));
  EXPECT_EQ(device_->failed(), Primitive::kQueryEvent);
  ASSERT_TRUE(IsOk(allocator->Trim(1_GiB)));
  EXPECT_EQ(allocator->Stats().pending_frees.current, 0);
  EXPECT_EQ(Need(allocator->Allocate(4_MiB, s1())), shared);
}

// A12
TEST_P(DeviceAllocatorTest, AnEventThatCannotBeAskedAgainDoesNotBlockItsStreamForEver) {
  const auto allocator = Make();
  const DeviceAddress shared = Need(allocator->Allocate(4_MiB, s1()));
  ASSERT_TRUE(IsOk(allocator->RecordUse(shared, s2())));
  HeldStream held = Hold(s2());
  ASSERT_TRUE(IsOk(allocator->Free(shared)));  // marked at once, because it is large
  for (std::uint64_t i = 1; i <= 3; ++i) {
    device_->FailNth(Primitive::kQueryEvent, 1, FailedPrecondition("recorded in a capture"));
    const Result<DeviceAddress> other = allocator->Allocate(30_MiB, s1());
    ASSERT_TRUE(IsOk(other));
    EXPECT_EQ(allocator->Stats().pending_frees.current, 1);
  }
  held.Release();
  ASSERT_TRUE(IsOk(second_.Synchronize()));
  ASSERT_TRUE(IsOk(allocator->Trim(1_GiB)));
  EXPECT_EQ(allocator->Stats().pending_frees.current, 0);
}

// Also where there is other memory for the next request, and however small the block is.
TEST_P(DeviceAllocatorTest, ABlockThatAnotherStreamIsDoneWithIsUsedAgainSoon) {
  const auto allocator = Make();
  now_ns_ = 1'000'000;
  for (const Bytes size : {100_B, 3_MiB}) {
    const DeviceAddress shared = Need(allocator->Allocate(size, s1()));
    HeldStream held = Hold(s2());
    ASSERT_TRUE(IsOk(Fill(shared, 64_B, 1, s2())));
    ASSERT_TRUE(IsOk(allocator->RecordUse(shared, s2())));
    ASSERT_TRUE(IsOk(allocator->Free(shared)));
    now_ns_ += 1'000'000;
    const DeviceAddress other = Need(allocator->Allocate(size, s1()));
    EXPECT_NE(other, shared);
    held.Release();
    ASSERT_TRUE(IsOk(second_.Synchronize()));
    now_ns_ += 1'000'000;
    EXPECT_EQ(Need(allocator->Allocate(size, s1())), shared);
  }
  // No more looks than the clock allows.
  const DeviceAddress shared = Need(allocator->Allocate(100_B, s1()));
  ASSERT_TRUE(IsOk(allocator->RecordUse(shared, s2())));
  now_ns_ += 1'000'000;
  const HeldStream held = Hold(s2());
  ASSERT_TRUE(IsOk(Fill(shared, 64_B, 1, s2())));
  ASSERT_TRUE(IsOk(allocator->Free(shared)));
  Need(allocator->Allocate(3_MiB, s1()));
  const std::uint64_t asked = device_->calls(Primitive::kQueryEvent);
  for (int i = 0; i < 10; ++i) Need(allocator->Allocate(1_KiB, s1()));
  EXPECT_EQ(device_->calls(Primitive::kQueryEvent), asked);
}

TEST_P(DeviceAllocatorTest, ForgettingAStreamLetsOthersHaveItsMemory) {
  const auto allocator = Make();
  allocator->SetLimit(64_MiB);
  hal::Stream gone = Need(hal::Stream::Create(inner_));
  const hal::StreamHandle handle = gone.get();
  const DeviceAddress stays = Need(allocator->Allocate(16_MiB, handle));
  const DeviceAddress freed = Need(allocator->Allocate(16_MiB, handle));
  const DeviceAddress used = Need(allocator->Allocate(16_MiB, s1()));
  ASSERT_TRUE(IsOk(allocator->RecordUse(used, handle)));
  ASSERT_TRUE(IsOk(allocator->Free(freed)));
  ASSERT_TRUE(IsOk(allocator->Free(used)));
  ASSERT_TRUE(IsOk(allocator->ForgetStream(handle)));
  ASSERT_TRUE(IsOk(gone.Close()));
  EXPECT_EQ(Need(allocator->Find(stays)).address, stays);
  const DeviceAddress other = Need(allocator->Allocate(48_MiB, s2()));
  ASSERT_TRUE(IsOk(allocator->Free(stays)));
  ASSERT_TRUE(IsOk(allocator->Free(other)));
  // Twice, and for one that was never seen: nothing to do, and no call for a stream that is gone.
  EXPECT_TRUE(IsOk(allocator->ForgetStream(handle)));
  EXPECT_TRUE(IsOk(allocator->ForgetStream(hal::StreamHandle{0xdead})));
  EXPECT_TRUE(IsOk(allocator->EmptyCache()));
  EXPECT_EQ(allocator->reserved(), 0_B);
  EXPECT_EQ(allocator->Check(), "");
}

// A2. Real drivers give the handle of a stream that was destroyed to the next one.
TEST_P(DeviceAllocatorTest, AForgottenHandleThatIsUsedAgainIsAStreamAgain) {
  const auto allocator = Make();
  const DeviceAddress before = Need(allocator->Allocate(8_MiB, s1()));
  ASSERT_TRUE(IsOk(allocator->Free(before)));
  ASSERT_TRUE(IsOk(allocator->ForgetStream(s1())));
  ASSERT_TRUE(IsOk(allocator->EmptyCache()));
  HeldStream held = Hold(s1());
  const DeviceAddress first = Need(allocator->Allocate(8_MiB, s1()));
  ASSERT_TRUE(IsOk(Fill(first, 8_MiB, 1, s1())));
  ASSERT_TRUE(IsOk(allocator->Free(first)));
  const DeviceAddress second = Need(allocator->Allocate(8_MiB, s2()));
  ASSERT_TRUE(IsOk(Fill(second, 8_MiB, 2, s2())));
  ASSERT_TRUE(IsOk(second_.Synchronize()));
  held.Release();
  ASSERT_TRUE(IsOk(first_.Synchronize()));
  EXPECT_TRUE(Holds(second, 8_MiB, 2, s2()));
}

// --- Arguments --------------------------------------------------------------------------------

TEST_P(DeviceAllocatorTest, ZeroBytesAreTheAddressZero) {
  const auto allocator = Make();
  EXPECT_EQ(Need(allocator->Allocate(0_B, s1())), DeviceAddress());
  EXPECT_TRUE(IsOk(allocator->Free(DeviceAddress())));
  EXPECT_TRUE(IsOk(allocator->Free(DeviceAddress(), 0_B)));
  EXPECT_TRUE(IsOk(allocator->RecordUse(DeviceAddress(), s2())));
  EXPECT_EQ(allocator->Find(DeviceAddress()).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(allocator->reserved(), 0_B);
  EXPECT_EQ(allocator->Stats().allocation.all.allocated, 0);
}

TEST_P(DeviceAllocatorTest, AddressesAreAlignedAsAsked) {
  const auto allocator = Make();
  std::vector<std::pair<DeviceAddress, Bytes>> got;
  for (const Bytes alignment : {0_B, 1_B, 256_B, 512_B, 4_KiB, 64_KiB, 2_MiB, 16_MiB}) {
    for (const Bytes size : {1_B, 700_B, 100_KiB, 3_MiB}) {
      SCOPED_TRACE(ToString(size) + " at " + ToString(alignment));
      const DeviceAddress address = Need(allocator->Allocate(size, s1(), {.alignment = alignment}));
      const std::uint64_t at_least = std::max<std::uint64_t>(alignment.count(), 512);
      EXPECT_EQ(address.value() % at_least, 0U);
      ASSERT_TRUE(IsOk(Fill(address, size, 1, s1())));
      got.emplace_back(address, size);
    }
  }
  EXPECT_EQ(allocator->Check(), "");
  for (const auto& [address, size] : got) ASSERT_TRUE(IsOk(allocator->Free(address, size)));
  EXPECT_EQ(allocator->Stats().allocation.all.current, 0);
  ASSERT_TRUE(IsOk(first_.Synchronize()));
  for (const Bytes wrong : {3_B, 100_B, 513_B, Bytes((2 << 20) + 512)}) {
    const Status status = allocator->Allocate(1_KiB, s1(), {.alignment = wrong}).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << ToString(wrong);
    EXPECT_NE(status.message().find("not a power of two"), std::string::npos);
  }
  // More than any address has.
  const Status status =
      allocator->Allocate(1_KiB, s1(), {.alignment = Bytes(std::uint64_t{1} << 63)}).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.ToString();
  EXPECT_EQ(allocator->Check(), "");
}

TEST_P(DeviceAllocatorTest, AWrongAddressOrSizeIsRefusedAndChangesNothing) {
  const auto allocator = Make();
  const auto other = Make();
  const DeviceAddress small = Need(allocator->Allocate(1000_B, s1()));
  const DeviceAddress large = Need(allocator->Allocate(5_MiB, s1()));
  const DeviceAddress foreign = Need(other->Allocate(5_MiB, s1()));
  const DeviceAddress freed = Need(allocator->Allocate(2000_B, s1()));
  const DeviceAddress freed_large = Need(allocator->Allocate(6_MiB, s1()));
  ASSERT_TRUE(IsOk(allocator->Free(freed)));
  ASSERT_TRUE(IsOk(allocator->Free(freed_large)));
  const telemetry::MemoryStats before = allocator->Stats();
  for (const DeviceAddress wrong :
       {freed, freed_large, foreign, small + Bytes(512), small + Bytes(1), large + Bytes(512),
        large + Bytes(2 << 20), DeviceAddress(0x1000), DeviceAddress(~std::uint64_t{0} - 511)}) {
    SCOPED_TRACE(ToString(wrong));
    for (const Status& status : {allocator->Free(wrong), allocator->Free(wrong, 1000_B),
                                 allocator->RecordUse(wrong, s2())}) {
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
      EXPECT_NE(status.message().find("no live block begins at " + ToString(wrong)),
                std::string::npos)
          << status.ToString();
    }
  }
  const Status size = allocator->Free(small, 1024_B);
  EXPECT_EQ(size.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(size.message().find("allocated with 1000 bytes and freed with 1024"), std::string::npos)
      << size.ToString();
  EXPECT_EQ(allocator->Stats(), before);
  EXPECT_EQ(allocator->Check(), "");
  EXPECT_TRUE(IsOk(allocator->Free(small, 1000_B)));
  EXPECT_TRUE(IsOk(allocator->Free(large, 5_MiB)));
  EXPECT_TRUE(IsOk(other->Free(foreign)));
}

TEST_P(DeviceAllocatorTest, FindSaysWhatHasAByte) {
  const auto allocator = Make();
  const telemetry::TagId tag = telemetry::InternTag("found");
  const DeviceAddress address = Need(allocator->Allocate(100'000_B, s2(), {.tag = tag}));
  for (const std::uint64_t offset : {0, 1, 511, 99'999}) {
    const AllocationInfo info = Need(allocator->Find(address + Bytes(offset)));
    EXPECT_EQ(info.address, address);
    EXPECT_EQ(info.requested, 100'000_B);
    EXPECT_EQ(info.size, 100'352_B);
    EXPECT_EQ(info.stream, s2());
    EXPECT_EQ(info.tag, tag);
    EXPECT_EQ(info.pool, 0U);
  }
  EXPECT_EQ(allocator->Find(address + Bytes(100'352)).status().code(), StatusCode::kNotFound);
  const std::optional<AllocationInfo> begins = allocator->FindBlock(address);
  ASSERT_TRUE(begins.has_value());
  EXPECT_EQ(begins->address, address);
  EXPECT_EQ(begins->requested, Need(allocator->Find(address)).requested);
  EXPECT_FALSE(allocator->FindBlock(address + 512_B).has_value());
  ASSERT_TRUE(IsOk(allocator->Free(address)));
  EXPECT_EQ(allocator->Find(address).status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(allocator->FindBlock(address).has_value());  // what a thread keeps is not live
}

TEST_P(DeviceAllocatorTest, BlocksHaveTheThreadsTagUnlessTheyNameOne) {
  const auto allocator = Make();
  DeviceAddress weights;
  {
    const telemetry::ScopedTag tag("weights");
    weights = Need(allocator->Allocate(3_MiB, s1()));
    Need(allocator->Allocate(1_MiB, s1(), {.tag = telemetry::InternTag("cache")}));
  }
  const DeviceAddress none = Need(allocator->Allocate(1_KiB, s1()));
  telemetry::MemoryStats stats = allocator->Stats();
  EXPECT_EQ(stats.tag_bytes.size(), 2U);
  EXPECT_EQ(stats.tag_bytes["weights"], 3 << 20);
  EXPECT_EQ(stats.tag_bytes["cache"], 1 << 20);
  EXPECT_EQ(Need(allocator->Find(none)).tag, telemetry::TagId::kNone);
  ASSERT_TRUE(IsOk(allocator->Free(weights)));
  EXPECT_EQ(allocator->Stats().tag_bytes.count("weights"), 0U);
}

// A6
TEST_P(DeviceAllocatorTest, SmallRequestsDoNotCarveUpLargeBlocks) {
  const auto allocator = Make();
  const DeviceAddress large = Need(allocator->Allocate(64_MiB, s1()));
  ASSERT_TRUE(IsOk(allocator->Free(large)));
  for (int i = 0; i < 1000; ++i) Need(allocator->Allocate(1_KiB, s1()));
  EXPECT_EQ(Need(allocator->Allocate(64_MiB, s1())), large);
  // And what small requests had goes back as well.
  EXPECT_LE(allocator->reserved(), 66_MiB);
}

// --- Threads ----------------------------------------------------------------------------------

TEST_P(DeviceAllocatorTest, AnotherThreadMayFreeAndTheMemoryIsReused) {
  const auto allocator = Make();
  std::vector<DeviceAddress> blocks;
  for (int i = 0; i < 1000; ++i) blocks.push_back(Need(allocator->Allocate(4_KiB, s1())));
  const Bytes reserved = allocator->reserved();
  std::thread([&] {
    for (const DeviceAddress block : blocks) ASSERT_TRUE(IsOk(allocator->Free(block)));
  }).join();
  EXPECT_EQ(allocator->Stats().allocation.all.current, 0);
  for (int i = 0; i < 1000; ++i) Need(allocator->Allocate(4_KiB, s1()));
  EXPECT_EQ(allocator->reserved(), reserved);
}

TEST_P(DeviceAllocatorTest, AThreadThatEndsGivesBackWhatItKeeps) {
  const auto allocator = Make();
  std::thread([&] {
    std::vector<DeviceAddress> blocks;
    for (int i = 0; i < 10; ++i) blocks.push_back(Need(allocator->Allocate(8_KiB, s1())));
    for (const DeviceAddress block : blocks) ASSERT_TRUE(IsOk(allocator->Free(block)));
  }).join();
  // One free block again, as seen from outside: nothing sits in a cache.
  const MemorySnapshot snapshot = allocator->Snapshot();
  ASSERT_EQ(snapshot.segments.size(), 1U);
  EXPECT_EQ(snapshot.segments[0].blocks.size(), 1U);
  EXPECT_EQ(allocator->Stats().allocation.all.allocated, 10);
}

TEST_P(DeviceAllocatorTest, AThreadMayOutliveTheAllocator) {
  std::atomic<int> step{0};
  auto allocator = Make();
  std::thread thread([&] {
    const DeviceAddress block = Need(allocator->Allocate(1_KiB, s1()));
    ASSERT_TRUE(IsOk(allocator->Free(block)));
    step = 1;
    step.notify_all();
    step.wait(1);
  });
  step.wait(0);
  allocator.reset();
  const auto next = Make();
  Need(next->Allocate(1_KiB, s1()));
  step = 2;
  step.notify_all();
  thread.join();
  EXPECT_EQ(next->Check(), "");
}

// --- Two devices, and peers -------------------------------------------------------------------

TEST_P(DeviceAllocatorTest, TwoDevicesDoNotMix) {
  const auto here = Make();
  const auto there = Need(DeviceAllocator::Create(peer_, {.config = Config()}));
  const hal::Stream stream = Need(hal::Stream::Create(peer_));
  const DeviceAddress first = Need(here->Allocate(4_KiB, s1()));
  const DeviceAddress second = Need(there->Allocate(4_KiB, stream.get()));
  EXPECT_EQ(here->Free(second).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(there->Free(first).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(there->Stats().allocation.all.current, 1);
  EXPECT_TRUE(IsOk(here->Free(first)));
  EXPECT_TRUE(IsOk(there->Free(second)));
}

// A11
TEST_F(DeviceAllocatorFixture, PeersMayUseTheMemoryWhereverItMoves) {
  const auto allocator = Need(DeviceAllocator::Create(device_, {.config = {}, .peers = {peer_}}));
  const hal::Stream there = Need(hal::Stream::Create(peer_));
  const auto peer_fills = [&](DeviceAddress address) {
    EXPECT_EQ(Need(inner_->GetAccess(address, peer_->id())), hal::Access::kReadWrite);
    ASSERT_TRUE(IsOk(peer_->EnqueueFill(
        there.get(), {.destination = address, .value = 3, .width = 1, .count = 4096})));
    ASSERT_TRUE(IsOk(there.Synchronize()));
    EXPECT_TRUE(Holds(address, 4_KiB, 3, s1()));
  };
  const DeviceAddress first = Need(allocator->Allocate(16_MiB, s1()));
  peer_fills(first);
  ASSERT_TRUE(IsOk(allocator->Free(first)));
  peer_fills(Need(allocator->Allocate(40_MiB, s1())));
}

// A11
TEST_F(DeviceAllocatorFixture, APeerThatCannotHaveAccessIsLeftOut) {
  ASSERT_TRUE(IsOk(sim::FindControls(*peer_)->SetPeer(inner_->id(), false)));
  const auto allocator = Need(DeviceAllocator::Create(device_, {.config = {}, .peers = {peer_}}));
  const DeviceAddress address = Need(allocator->Allocate(4_MiB, s1()));
  EXPECT_EQ(Need(inner_->GetAccess(address, peer_->id())), hal::Access::kNone);
}

// A11: one that comes later gets what there is already, all of it or, on an error, none.
TEST_F(DeviceAllocatorFixture, APeerThatComesLaterReachesWhatIsThere) {
  const auto allocator = Make({});
  const DeviceAddress small = Need(allocator->Allocate(4_KiB, s1()));
  const DeviceAddress large = Need(allocator->Allocate(40_MiB, s1()));
  const auto access = [&](DeviceAddress address) {
    return Need(inner_->GetAccess(address, peer_->id()));
  };
  device_->FailNth(Primitive::kSetAccess, 2, Internal("for a test"));
  EXPECT_EQ(allocator->AddPeer(peer_).code(), StatusCode::kInternal);
  device_->ClearRules();
  EXPECT_EQ(access(small), hal::Access::kNone);
  EXPECT_EQ(access(large), hal::Access::kNone);
  EXPECT_EQ(access(Need(allocator->Allocate(64_MiB, s1()))), hal::Access::kNone);

  for (int twice = 0; twice < 2; ++twice) ASSERT_TRUE(IsOk(allocator->AddPeer(peer_)));
  EXPECT_EQ(access(small), hal::Access::kReadWrite);
  EXPECT_EQ(access(large), hal::Access::kReadWrite);
  EXPECT_EQ(access(Need(allocator->Allocate(80_MiB, s1()))), hal::Access::kReadWrite);

  // Gone, and closed: memory can still be had.
  allocator->RemovePeer(peer_->id());
  peer_ = nullptr;
  EXPECT_TRUE(IsOk(allocator->Allocate(100_MiB, s1())));
  EXPECT_EQ(allocator->AddPeer(nullptr).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(IsOk(allocator->AddPeer(inner_)));
}

TEST_F(DeviceAllocatorFixture, PeersOfPlainSegmentsAreEnabled) {
  const auto allocator = Make({.expandable_segments = false});
  ASSERT_TRUE(IsOk(allocator->AddPeer(peer_)));
  const hal::Stream there = Need(hal::Stream::Create(peer_));
  const DeviceAddress address = Need(allocator->Allocate(4_KiB, s1()));
  ASSERT_TRUE(IsOk(peer_->EnqueueFill(
      there.get(), {.destination = address, .value = 3, .width = 1, .count = 4096})));
  ASSERT_TRUE(IsOk(there.Synchronize()));
  EXPECT_TRUE(Holds(address, 4_KiB, 3, s1()));
}

// --- Ending -----------------------------------------------------------------------------------

TEST_P(DeviceAllocatorTest, TheEndWaitsForWorkAndGivesEverythingBack) {
  auto allocator = Make();
  const DeviceAddress live = Need(allocator->Allocate(8_MiB, s1()));
  const DeviceAddress used = Need(allocator->Allocate(8_MiB, s1()));
  const DeviceAddress kept = Need(allocator->Allocate(1_KiB, s1()));
  ASSERT_TRUE(IsOk(allocator->RecordUse(used, s2())));
  ASSERT_TRUE(IsOk(allocator->RecordUse(live, s2())));
  ASSERT_TRUE(IsOk(allocator->Free(kept)));
  HeldStream one = Hold(s1());
  HeldStream two = Hold(s2());
  ASSERT_TRUE(IsOk(Fill(live, 8_MiB, 1, s1())));
  ASSERT_TRUE(IsOk(Fill(used, 8_MiB, 1, s2())));
  ASSERT_TRUE(IsOk(allocator->Free(used)));
  // Nothing goes before the streams are through.
  std::thread release([&] {
    EXPECT_TRUE(Soon([&] { return device_->calls(Primitive::kSynchronizeEvent) != 0; }))
        << "nobody waits for the stream";
    EXPECT_EQ(device_->calls(Primitive::kUnmap) + device_->calls(Primitive::kFreePlain), 0U);
    one.Release();
    two.Release();
  });
  device_->ResetCounts();
  allocator.reset();
  release.join();
  EXPECT_TRUE(IsOk(device_->Health()));
  ExpectNothingLeft();
}

TEST_P(DeviceAllocatorTest, AfterALossErrorsAreTypedAndFreesStillWork) {
  auto allocator = Make();
  std::vector<DeviceAddress> blocks;
  for (const Bytes size : kSizes) blocks.push_back(Need(allocator->Allocate(size, s1())));
  ASSERT_TRUE(IsOk(allocator->RecordUse(blocks[4], s2())));
  controls().Lose("on purpose");
  EXPECT_EQ(allocator->Allocate(200_MiB, s1()).status().code(), StatusCode::kDeviceLost);
  EXPECT_EQ(allocator->Allocate(900_KiB, s2()).status().code(), StatusCode::kDeviceLost);
  for (const DeviceAddress block : blocks) EXPECT_TRUE(IsOk(allocator->Free(block)));
  EXPECT_EQ(allocator->Stats().allocation.all.current, 0);
  EXPECT_EQ(allocator->Allocate(200_MiB, s1()).status().code(), StatusCode::kDeviceLost);
  EXPECT_EQ(allocator->Trim(0_B).code(), StatusCode::kDeviceLost);
  EXPECT_EQ(allocator->ForgetStream(s1()).code(), StatusCode::kDeviceLost);
  EXPECT_NE(allocator->Report(), "");
  EXPECT_EQ(allocator->Check(), "");
  allocator.reset();
}

// --- Pass-through -----------------------------------------------------------------------------

TEST_F(DeviceAllocatorFixture, PassThroughAsksTheDriverEveryTime) {
  const auto allocator = Make({.backend = AllocatorConfig::Backend::kPassthrough});
  for (const Bytes size : kSizes) {
    device_->ResetCounts();
    const DeviceAddress address = Need(allocator->Allocate(size, s1()));
    EXPECT_EQ(device_->calls(Primitive::kAllocatePlain), 1U);
    EXPECT_EQ(allocator->reserved().count(), (size.count() + 511) / 512 * 512);
    ASSERT_TRUE(IsOk(allocator->Free(address)));
    EXPECT_EQ(device_->calls(Primitive::kFreePlain), 1U);
    EXPECT_EQ(allocator->reserved(), 0_B);
    EXPECT_EQ(controls().used(), 0_B);
  }
  EXPECT_EQ(allocator->Check(), "");
}

// A5
TEST_F(DeviceAllocatorFixture, PassThroughGivesNothingBackThatIsStillInUse) {
  const auto allocator = Make({.backend = AllocatorConfig::Backend::kPassthrough});
  const DeviceAddress address = Need(allocator->Allocate(8_MiB, s1()));
  HeldStream held = Hold(s1());
  ASSERT_TRUE(IsOk(Fill(address, 8_MiB, 1, s1())));
  std::thread release([&] {
    EXPECT_TRUE(Soon([&] { return device_->calls(Primitive::kSynchronizeEvent) != 0; }))
        << "nobody waits for the stream";
    EXPECT_EQ(device_->calls(Primitive::kFreePlain), 0U);
    held.Release();
  });
  EXPECT_TRUE(IsOk(allocator->Free(address)));
  release.join();
  ASSERT_TRUE(IsOk(first_.Synchronize()));
  EXPECT_EQ(allocator->reserved(), 0_B);
}

// While a free waits for its stream nobody gets the block, not even in the order of the stream.
TEST_F(DeviceAllocatorFixture, PassThroughReusesNothingThatIsOnItsWayBack) {
  const auto allocator = Make({.backend = AllocatorConfig::Backend::kPassthrough});
  const DeviceAddress address = Need(allocator->Allocate(8_MiB, s1()));
  HeldStream held = Hold(s1());
  ASSERT_TRUE(IsOk(Fill(address, 8_MiB, 1, s1())));
  std::thread meanwhile([&] {
    EXPECT_TRUE(Soon([&] { return device_->calls(Primitive::kSynchronizeEvent) != 0; }))
        << "nobody waits for the stream";
    EXPECT_NE(Need(allocator->Allocate(4_MiB, s1())), address);
    EXPECT_EQ(device_->calls(Primitive::kAllocatePlain), 2U);
    EXPECT_EQ(allocator->Free(address).code(), StatusCode::kInvalidArgument);
    held.Release();
  });
  EXPECT_TRUE(IsOk(allocator->Free(address)));
  meanwhile.join();
  EXPECT_EQ(allocator->reserved(), 4_MiB);
}

// Also where the block does not begin its segment.
TEST_F(DeviceAllocatorFixture, PassThroughGivesAlignedBlocksBackAtOnce) {
  const auto allocator = Make({.backend = AllocatorConfig::Backend::kPassthrough});
  const DeviceAddress first = Need(allocator->Allocate(1_KiB, s1()));
  const DeviceAddress aligned = Need(allocator->Allocate(1_KiB, s1(), {.alignment = 64_KiB}));
  ASSERT_TRUE(IsOk(allocator->Free(first)));
  ASSERT_TRUE(IsOk(allocator->Free(aligned)));
  EXPECT_EQ(allocator->reserved(), 0_B);
}

// A block that is large beside what a thread may keep pushes many others out: it is kept only if
// its size was asked for, and then the next request of that size is a hit.
TEST_F(DeviceAllocatorFixture, AThreadKeepsWhatItWillAskForAgain) {
  const auto allocator = Make({});
  const auto misses = [&] { return allocator->Stats().front_cache_misses; };
  for (const Bytes size : {4_KiB, 1_MiB}) {
    SCOPED_TRACE(ToString(size));
    const std::int64_t before = misses();
    for (int i = 0; i < 10; ++i) {
      const DeviceAddress block = Need(allocator->Allocate(size, s1()));
      ASSERT_TRUE(IsOk(allocator->Free(block)));
    }
    EXPECT_EQ(misses(), before + 1);
  }
  // Of ever new sizes none is, and the small block stays where it is when they are freed.
  std::vector<DeviceAddress> blocks;
  for (std::uint64_t i = 0; i < 512; ++i) {
    blocks.push_back(Need(allocator->Allocate(256_KiB + Bytes(512 * i), s1())));
  }
  const DeviceAddress small = Need(allocator->Allocate(4_KiB, s1()));
  ASSERT_TRUE(IsOk(allocator->Free(small)));
  for (std::size_t i = 0; i < 256; ++i) ASSERT_TRUE(IsOk(allocator->Free(blocks[i])));
  const std::int64_t before = misses();
  EXPECT_EQ(Need(allocator->Allocate(4_KiB, s1())), small);
  EXPECT_EQ(misses(), before);
  EXPECT_EQ(allocator->Check(), "");
}

KEEL_WITH_BOTH_SOURCES(DeviceAllocatorTest);

}  // namespace
}  // namespace keel::memory
