// The stand-ins' core answers as real driver libraries do, above all where those differ from the
// device layer's contracts: that is what makes tests on a stand-in worth something.

#include "drivers/standin/standin.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

namespace keel::standin {
namespace {

constexpr std::size_t kGranule = 2U << 20;
const hal::MemoryOptions kPlain{};

class StandinTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("KEEL_STANDIN", "devices:2,memory:1GiB,arena:8GiB", 1);
    const Gate gate = Initialize();
    ASSERT_FALSE(gate.code.has_value());
    ASSERT_EQ(gate.cause, Cause::kOk);
    ASSERT_EQ(RetainPrimary(&context_, 0), Cause::kOk);
    ASSERT_EQ(SetCurrent(context_), Cause::kOk);
    ASSERT_EQ(CreateStream(&stream_, /*blocking=*/false, 0), Cause::kOk);
  }
  // A context that was lost takes what is left with it.
  void TearDown() override {
    EXPECT_EQ(SetCurrent(nullptr), Cause::kOk);
    EXPECT_EQ(ReleasePrimary(0), Cause::kOk);
    EXPECT_EQ(std::string(keel_standin_describe_alive()), "");
  }

  // A reservation of `granules` with memory of one mapped at its start.
  Address MapOne(std::size_t granules, hal::Access access) {
    Address address = 0;
    EXPECT_EQ(ReserveAddress(&address, granules * kGranule, 0, 0), Cause::kOk);
    EXPECT_EQ(CreateMemory(&memory_, kGranule, 0, kPlain), Cause::kOk);
    EXPECT_EQ(Map(address, kGranule, 0, memory_), Cause::kOk);
    const Grant grant{0, access};
    EXPECT_EQ(SetAccess(address, kGranule, {&grant, 1}), Cause::kOk);
    return address;
  }
  void UnmapOne(Address address, std::size_t granules) {
    EXPECT_EQ(Unmap(address, granules * kGranule), Cause::kOk);
    EXPECT_EQ(ReleaseMemory(memory_), Cause::kOk);
    EXPECT_EQ(FreeAddress(address, granules * kGranule), Cause::kOk);
  }

  void* context_ = nullptr;
  void* stream_ = nullptr;
  std::uint64_t memory_ = 0;
};

TEST(StandinGateTest, NothingWorksBeforeItIsInitialised) {
  // In a process of its own: others may have initialised this one.
  const pid_t child = fork();
  if (child == 0) _exit(Enter("entry").cause == Cause::kNotInitialized ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(StandinTest, NothingWorksInAForkedChild) {
  const pid_t child = fork();
  if (child == 0) {
    const bool right = Enter("entry").cause == Cause::kNotInitialized &&
                       Initialize().cause == Cause::kNotInitialized;
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(StandinTest, ATestFailsTheCallThatItWants) {
  keel_standin_fail("second", 1, 42);
  EXPECT_FALSE(Enter("first").code.has_value());
  EXPECT_FALSE(Enter("second").code.has_value());
  EXPECT_EQ(keel_standin_failed(), nullptr);
  EXPECT_EQ(Enter("second").code, 42);
  EXPECT_STREQ(keel_standin_failed(), "second");
  EXPECT_FALSE(Enter("second").code.has_value());
  keel_standin_fail(nullptr, 0, 43);
  EXPECT_EQ(Enter("any").code, 43);
  keel_standin_fail(nullptr, 0, 44);
  keel_standin_fail(nullptr, -1, 0);
  EXPECT_FALSE(Enter("any").code.has_value());
}

TEST_F(StandinTest, MostCallsNeedACurrentContext) {
  ASSERT_EQ(SetCurrent(nullptr), Cause::kOk);
  Address address = 0;
  void* made = nullptr;
  std::size_t size = 0;
  EXPECT_EQ(AllocatePlain(&address, 4096), Cause::kInvalidContext);
  EXPECT_EQ(AllocateHost(&made, 4096, false), Cause::kInvalidContext);
  EXPECT_EQ(GetMemoryInfo(&size, &size), Cause::kInvalidContext);
  EXPECT_EQ(CreateStream(&made, false, 0), Cause::kInvalidContext);
  EXPECT_EQ(CreateEvent(&made, false), Cause::kInvalidContext);
  EXPECT_EQ(SynchronizeContext(), Cause::kInvalidContext);
  EXPECT_EQ(QueryStream(kLegacyStream), Cause::kInvalidContext);
  EXPECT_EQ(Enqueue(stream_, hal::Fill{DeviceAddress(4096), 1, 1, 16}), Cause::kInvalidContext);
  EXPECT_EQ(QueryStream(stream_), Cause::kOk);
  EXPECT_EQ(SetCurrent(&address), Cause::kInvalidContext);
  void* other = nullptr;
  ASSERT_EQ(RetainPrimary(&other, 1), Cause::kOk);
  ASSERT_EQ(SetCurrent(other), Cause::kOk);
  ASSERT_EQ(ReleasePrimary(1), Cause::kOk);
  EXPECT_EQ(AllocatePlain(&address, 4096), Cause::kContextDestroyed);
  EXPECT_EQ(ReleasePrimary(1), Cause::kInvalidContext);
  EXPECT_EQ(RetainPrimary(&other, 2), Cause::kInvalidDevice);
}

TEST_F(StandinTest, MappingsAreWholeAndMistakesAreWrongValues) {
  Address address = MapOne(4, hal::Access::kReadWrite);
  EXPECT_EQ(Map(address + kGranule, kGranule, kGranule, memory_), Cause::kNotSupported);
  EXPECT_EQ(Map(address + kGranule, 2 * kGranule, 0, memory_), Cause::kNotSupported);
  EXPECT_EQ(Map(address, kGranule, 0, memory_), Cause::kInvalidValue);
  EXPECT_EQ(Map(address + 4 * kGranule, kGranule, 0, memory_), Cause::kInvalidValue);
  EXPECT_EQ(Map(address + 4096, kGranule, 0, memory_), Cause::kInvalidValue);
  EXPECT_EQ(FreeAddress(address, 4 * kGranule), Cause::kInvalidValue);
  EXPECT_EQ(FreeAddress(address, kGranule), Cause::kInvalidValue);
  const Grant grant{0, hal::Access::kRead};
  EXPECT_EQ(SetAccess(address, kGranule / 2, {&grant, 1}), Cause::kInvalidValue);
  EXPECT_EQ(SetAccess(address, 2 * kGranule, {&grant, 1}), Cause::kInvalidValue);
  EXPECT_EQ(Unmap(address, kGranule / 2), Cause::kInvalidValue);
  EXPECT_EQ(Unmap(address + kGranule / 2, kGranule), Cause::kInvalidValue);
  hal::Access access = hal::Access::kNone;
  EXPECT_EQ(GetAccess(&access, address + kGranule, 0), Cause::kInvalidValue);
  // A hole is no mistake: after the mapping, and then everywhere.
  EXPECT_EQ(Unmap(address, 4 * kGranule), Cause::kOk);
  EXPECT_EQ(Unmap(address, 4 * kGranule), Cause::kOk);
  EXPECT_EQ(ReleaseMemory(memory_), Cause::kOk);
  EXPECT_EQ(ReleaseMemory(memory_), Cause::kInvalidValue);
  EXPECT_EQ(FreeAddress(address, 4 * kGranule), Cause::kOk);
}

TEST_F(StandinTest, ADescriptorKnowsItsSizeAndForeignOnesAreUnknown) {
  std::uint64_t memory = 0;
  int descriptor = -1;
  ASSERT_EQ(CreateMemory(&memory, kGranule, 0, kPlain), Cause::kOk);
  EXPECT_EQ(ExportMemory(&descriptor, memory), Cause::kInvalidValue);
  EXPECT_EQ(ReleaseMemory(memory), Cause::kOk);
  ASSERT_EQ(CreateMemory(&memory, kGranule, 0, {.exportable = true}), Cause::kOk);
  ASSERT_EQ(ExportMemory(&descriptor, memory), Cause::kOk);
  std::uint64_t imported = 0;
  EXPECT_EQ(ImportMemory(&imported, descriptor), Cause::kOk);
  close(descriptor);
  EXPECT_EQ(ReleaseMemory(imported), Cause::kOk);
  EXPECT_EQ(ReleaseMemory(memory), Cause::kOk);
  EXPECT_EQ(ImportMemory(&imported, 0), Cause::kUnknown);
  EXPECT_EQ(ImportMemory(&imported, -1), Cause::kUnknown);
}

TEST_F(StandinTest, HostMemoryIsPinnedOnce) {
  void* const pages =
      mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  void* allocated = nullptr;
  ASSERT_EQ(AllocateHost(&allocated, 4096, false), Cause::kOk);
  ASSERT_EQ(RegisterHost(pages, 8192), Cause::kOk);
  EXPECT_EQ(RegisterHost(pages, 4096), Cause::kHostAlreadyRegistered);
  EXPECT_EQ(RegisterHost(allocated, 4096), Cause::kInvalidValue);
  EXPECT_EQ(KindOf(reinterpret_cast<Address>(pages) + 8191), MemoryKind::kPinned);
  EXPECT_EQ(KindOf(reinterpret_cast<Address>(&allocated)), MemoryKind::kPageable);
  EXPECT_EQ(FreeHost(pages), Cause::kInvalidValue);
  EXPECT_EQ(UnregisterHost(allocated), Cause::kHostNotRegistered);
  EXPECT_EQ(UnregisterHost(pages), Cause::kOk);
  EXPECT_EQ(UnregisterHost(pages), Cause::kHostNotRegistered);
  EXPECT_EQ(FreeHost(allocated), Cause::kOk);
  munmap(pages, 8192);
}

TEST_F(StandinTest, CopiesAreTypedAndCheckedAtTheCall) {
  const Address address = MapOne(2, hal::Access::kRead);
  void* host = nullptr;
  ASSERT_EQ(AllocateHost(&host, 4096, false), Cause::kOk);
  const Place on_host{Place::Side::kHost, reinterpret_cast<Address>(host)};
  const auto device = [](Address at) { return Place{Place::Side::kDevice, at}; };
  EXPECT_EQ(Enqueue(stream_, Transfer{on_host, device(address), 8}), Cause::kOk);
  // Read only; not mapped; over the edge; never handed out; host memory by mistake.
  EXPECT_EQ(Enqueue(stream_, Transfer{device(address), on_host, 8}), Cause::kInvalidValue);
  EXPECT_EQ(Enqueue(stream_, Transfer{on_host, device(address + kGranule), 8}),
            Cause::kInvalidValue);
  EXPECT_EQ(Enqueue(stream_, Transfer{on_host, device(address + kGranule - 4), 8}),
            Cause::kInvalidValue);
  EXPECT_EQ(Enqueue(stream_, Transfer{on_host, device(0x1234000), 8}), Cause::kInvalidValue);
  EXPECT_EQ(Enqueue(stream_, Transfer{{Place::Side::kHost, address}, on_host, 8}),
            Cause::kInvalidValue);
  EXPECT_EQ(Enqueue(stream_, hal::Fill{DeviceAddress(address + kGranule), 1, 1, 8}),
            Cause::kInvalidValue);
  EXPECT_EQ(SynchronizeContext(), Cause::kOk);
  EXPECT_EQ(FreeHost(host), Cause::kOk);
  UnmapOne(address, 2);
}

TEST_F(StandinTest, HandlesThatAreNotAliveAreRefused) {
  void* stale = nullptr;
  ASSERT_EQ(CreateEvent(&stale, false), Cause::kOk);
  ASSERT_EQ(DestroyEvent(stale), Cause::kOk);
  void* const garbage = reinterpret_cast<void*>(0xdead0000);
  for (void* const handle : {stale, garbage}) {
    EXPECT_EQ(QueryEvent(handle), Cause::kInvalidHandle);
    EXPECT_EQ(DestroyEvent(handle), Cause::kInvalidHandle);
    EXPECT_EQ(QueryStream(handle), Cause::kInvalidHandle);
    EXPECT_EQ(DestroyGraph(handle), Cause::kInvalidHandle);
    EXPECT_EQ(UnloadModule(handle), Cause::kInvalidHandle);
    EXPECT_EQ(LaunchGraph(handle, stream_), Cause::kInvalidHandle);
    EXPECT_EQ(Enqueue(stream_, Launch{handle, {}, nullptr}), Cause::kInvalidHandle);
  }
}

TEST_F(StandinTest, AModuleMayDeclareWhatHasNoBody) {
  const KernelEntry entries[] = {{"keel_fill", {8, 4, 8}}, {"keel_add", {8}}, {"unknown", {}}};
  void* module = nullptr;
  void* kernel = nullptr;
  ASSERT_EQ(LoadModule(&module, entries), Cause::kOk);
  EXPECT_EQ(FindKernel(&kernel, module, "other"), Cause::kNotFound);
  for (const char* name : {"keel_add", "unknown"}) {
    ASSERT_EQ(FindKernel(&kernel, module, name), Cause::kOk);
    std::uint64_t zero = 0;
    void* arguments[] = {&zero};
    EXPECT_EQ(Enqueue(stream_, Launch{kernel, {}, arguments}), Cause::kInvalidImage) << name;
  }
  EXPECT_EQ(UnloadModule(module), Cause::kOk);
}

TEST_F(StandinTest, NoCallIsPermittedInsideAHostFunction) {
  static std::atomic<Cause> seen{Cause::kOk};
  const hal::HostCall call{[](void*) { seen = Enter("entry").cause; }, nullptr};
  ASSERT_EQ(Enqueue(stream_, call), Cause::kOk);
  ASSERT_EQ(SynchronizeContext(), Cause::kOk);
  EXPECT_EQ(seen.load(), Cause::kNotPermitted);
}

TEST_F(StandinTest, CapturesRefuseWithTheRightWord) {
  void* graph = nullptr;
  void* event = nullptr;
  void* other = nullptr;
  CaptureInfo info;
  const auto state = [&] {
    EXPECT_EQ(GetCaptureInfo(stream_, &info), Cause::kOk);
    return info.state;
  };
  ASSERT_EQ(CreateEvent(&event, false), Cause::kOk);
  ASSERT_EQ(CreateStream(&other, false, 0), Cause::kOk);
  EXPECT_EQ(BeginCapture(kLegacyStream, 0), Cause::kCaptureUnsupported);
  EXPECT_EQ(EndCapture(stream_, &graph), Cause::kIllegalState);

  // A thread obeys captures until it says otherwise; the refusal comes before any other.
  ASSERT_EQ(BeginCapture(stream_, 0), Cause::kOk);
  EXPECT_EQ(BeginCapture(stream_, 0), Cause::kIllegalState);
  EXPECT_EQ(state(), hal::CaptureState::kActive);
  EXPECT_EQ(FreePlain(0x1234), Cause::kCaptureUnsupported);
  EXPECT_EQ(state(), hal::CaptureState::kInvalidated);
  EXPECT_EQ(RecordEvent(event, stream_), Cause::kCaptureInvalidated);
  EXPECT_EQ(EndCapture(stream_, &graph), Cause::kCaptureInvalidated);

  int mode = static_cast<int>(hal::CaptureMode::kRelaxed);
  ASSERT_EQ(ExchangeCaptureMode(&mode), Cause::kOk);
  EXPECT_EQ(mode, static_cast<int>(hal::CaptureMode::kGlobal));
  ASSERT_EQ(BeginCapture(stream_, 0), Cause::kOk);
  EXPECT_EQ(FreePlain(0x1234), Cause::kInvalidValue);
  EXPECT_EQ(state(), hal::CaptureState::kActive);
  ASSERT_EQ(RecordEvent(event, stream_), Cause::kOk);
  ASSERT_EQ(WaitEvent(other, event), Cause::kOk);
  EXPECT_EQ(EndCapture(other, &graph), Cause::kCaptureUnmatched);
  EXPECT_EQ(EndCapture(stream_, &graph), Cause::kCaptureInvalidated);
  EXPECT_EQ(QueryEvent(event), Cause::kInvalidValue);

  ASSERT_EQ(BeginCapture(stream_, 0), Cause::kOk);
  std::thread([&] {
    void* none = nullptr;
    EXPECT_EQ(EndCapture(stream_, &none), Cause::kCaptureWrongThread);
  }).join();
  EXPECT_EQ(EndCapture(stream_, &graph), Cause::kCaptureInvalidated);

  ASSERT_EQ(RecordEvent(event, other), Cause::kOk);
  ASSERT_EQ(BeginCapture(stream_, 0), Cause::kOk);
  EXPECT_EQ(WaitEvent(stream_, event), Cause::kCaptureIsolation);
  EXPECT_EQ(EndCapture(stream_, &graph), Cause::kCaptureInvalidated);

  // The legacy default stream would wait for the thread's own.
  ASSERT_EQ(BeginCapture(kPerThreadStream, 0), Cause::kOk);
  EXPECT_EQ(GetCaptureInfo(kLegacyStream, &info), Cause::kCaptureImplicit);
  EXPECT_EQ(QueryStream(kLegacyStream), Cause::kCaptureImplicit);
  EXPECT_EQ(EndCapture(kPerThreadStream, &graph), Cause::kCaptureInvalidated);

  EXPECT_EQ(ExchangeCaptureMode(&mode), Cause::kOk);
  EXPECT_EQ(DestroyEvent(event), Cause::kOk);
  EXPECT_EQ(DestroyStream(other), Cause::kOk);
}

// In a process of its own: the device never comes back.
TEST(StandinDeathTest, ALostContextStaysLost) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto lose = [] {
    setenv("KEEL_STANDIN", "devices:2,memory:1GiB,arena:8GiB", 1);
    (void)Initialize();
    void* context = nullptr;
    void* other = nullptr;
    void* stream = nullptr;
    void* module = nullptr;
    void* kernel = nullptr;
    Address address = 0;
    const KernelEntry entry{"keel_fill", {8, 4, 8}};
    bool right = RetainPrimary(&context, 0) == Cause::kOk && SetCurrent(context) == Cause::kOk &&
                 RetainPrimary(&other, 1) == Cause::kOk &&
                 CreateStream(&stream, false, 0) == Cause::kOk &&
                 LoadModule(&module, {&entry, 1}) == Cause::kOk &&
                 FindKernel(&kernel, module, "keel_fill") == Cause::kOk &&
                 ReserveAddress(&address, kGranule, 0, 0) == Cause::kOk;
    std::uint32_t value = 1;
    std::uint64_t count = 16;
    void* arguments[] = {&address, &value, &count};
    // Nobody looks at a kernel's addresses before it runs.
    right = right && Enqueue(stream, Launch{kernel, {}, arguments}) == Cause::kOk &&
            SynchronizeContext() == Cause::kLost && QueryStream(stream) == Cause::kLost &&
            DestroyStream(stream) == Cause::kLost && FreeAddress(address, kGranule) == Cause::kOk &&
            ReleasePrimary(0) == Cause::kOk && RetainPrimary(&context, 0) == Cause::kLost;
    // The other device goes on.
    right = right && SetCurrent(other) == Cause::kOk &&
            AllocatePlain(&address, 4096) == Cause::kOk && FreePlain(address) == Cause::kOk;
    std::exit(right ? 0 : 1);
  };
  EXPECT_EXIT(lose(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace keel::standin
