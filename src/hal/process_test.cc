// A device at the edges of a process: in a forked child, and while static objects are destroyed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "base/forked_child_test.h"
#include "hal/sim_devices_test.h"
#include "keel/hal/event.h"
#include "keel/hal/graph.h"
#include "keel/hal/memory.h"
#include "keel/hal/module.h"
#include "keel/hal/stream.h"

namespace keel::hal {
namespace {

// Some of everything, with work queued.
struct Owners {
  std::shared_ptr<Device> device;
  Stream stream;
  Event event;
  PlainMemory plain;
  MappedMemory mapped;
  HostMemory host;
  Module module;
  Graph graph;
  GraphExec exec;

  void Open(std::shared_ptr<Device> on) {
    device = std::move(on);
    stream = Need(Stream::Create(device));
    event = Need(Event::Create(device));
    plain = Need(PlainMemory::Create(device, 1_MiB));
    mapped = Need(MappedMemory::Create(device, 2_MiB));
    host = Need(HostMemory::Create(device, 1_MiB));
    module = Need(Module::LoadStandard(device));
    graph = Need(Graph::Create(device));
    exec = Need(GraphExec::Create(graph));
    Use();
  }
  void Use() {
    const Fill fill{.destination = mapped.address(), .value = 1, .width = 4, .count = 1000};
    if (!device->EnqueueFill(stream.get(), fill).ok()) std::abort();
    if (!stream.Synchronize().ok()) std::abort();
    // What stays queued uses no memory: that may be given back while it runs.
    const HostCall nap{.function = [](void*) { usleep(200); }, .data = nullptr};
    for (int i = 0; i < 50; ++i) {
      if (!device->CallHost(stream.get(), nap).ok()) std::abort();
    }
    if (!event.Record(stream.get()).ok()) std::abort();
  }
};

class ForkTest : public SimDevicesTest {
 protected:
  void SetUp() override { SetLogLevel(LogLevel::kDebug); }
};

// A9
TEST_F(ForkTest, TheParentsDeviceDoesNothingInAChildAndIsDestroyedInSilence) {
  std::optional<Owners> owners(std::in_place);
  owners->Open(device_);
  // As if a destructor had failed before the fork.
  device_->retries().Add({"from before the fork", [] { return Internal("not now"); }});
  ::testing::internal::CaptureStderr();
  const int status = InForkedChild([&] {
    EXPECT_EQ(device_->GetMemoryInfo().status().code(), StatusCode::kFailedPrecondition);
    EXPECT_EQ(device_->AllocatePlain(1_MiB).status().code(), StatusCode::kFailedPrecondition);
    EXPECT_EQ(owners->stream.Synchronize().code(), StatusCode::kFailedPrecondition);
    EXPECT_EQ(owners->event.Query().status().code(), StatusCode::kFailedPrecondition);
    EXPECT_EQ(owners->exec.Launch(owners->stream.get()).code(), StatusCode::kFailedPrecondition);
    EXPECT_EQ(owners->mapped.Close().code(), StatusCode::kFailedPrecondition);
    EXPECT_FALSE(device_->Health().ok());
    owners.reset();
    EXPECT_EQ(device_->retries().size(), 1U);
    device_ = nullptr;
    peer_ = nullptr;
    inner_ = nullptr;
  });
  const std::string written = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(written, "");
  // The parent has noticed nothing.
  EXPECT_TRUE(IsOk(owners->stream.Synchronize()));
  owners->Use();
  EXPECT_TRUE(IsOk(owners->stream.Synchronize()));
  owners.reset();
  EXPECT_EQ(device_->retries().Abandon().size(), 1U);
  ExpectNothingLeft();
}

#if KEEL_TEST_THREADS_AFTER_FORK
// A9
TEST_F(ForkTest, AChildOpensADeviceOfItsOwn) {
  Owners parent;
  parent.Open(device_);
  const int status = InForkedChild([&] {
    const std::shared_ptr<Device> own = Need(driver_->Open(0));
    EXPECT_NE(own.get(), inner_.get());
    Owners child;
    child.Open(own);
    EXPECT_TRUE(IsOk(child.stream.Synchronize(Deadline::After(std::chrono::seconds(30)))));
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(IsOk(parent.stream.Synchronize()));
}
#endif

// Also while another thread is in the middle of changing it: streams, tables, mappings, memory.
TEST_F(ForkTest, AChildMayDestroyADeviceThatIsBusy) {
  Owners owners;
  owners.Open(inner_);
  std::optional<WorkingThread> busy([&] {
    Owners more;
    more.Open(inner_);
  });
  // With a sanitizer the stream's own thread must rest, too.
  if (!kForksAmongBusyThreads) {
    ASSERT_TRUE(IsOk(owners.stream.Synchronize()));
  }
  for (int round = 0; round < kForks; ++round) {
    const int status = InForkedChild([&] {
      EXPECT_EQ(inner_->GetMemoryInfo().status().code(), StatusCode::kFailedPrecondition);
      Owners gone = std::move(owners);
      device_ = nullptr;
      peer_ = nullptr;
      inner_ = nullptr;
    });
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << " in " << round;
  }
  busy.reset();
  owners.Use();
}

class StaticDestructionDeathTest : public ::testing::Test {
 protected:
  StaticDestructionDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

std::shared_ptr<Device> OpenBuiltinSim() {
  setenv("KEEL_DRIVER", "sim", 1);
  setenv("KEEL_SIM", "memory:1GiB,arena:8GiB", 1);
  return Need(Registry::Global().OpenDefault());
}

// A9: made before anything of Keel, and so destroyed after everything of Keel that is static.
TEST_F(StaticDestructionDeathTest, DevicesOfTheOldestStaticObjectsCloseAtExit) {
  EXPECT_EXIT(
      {
        static Owners oldest;
        oldest.Open(OpenBuiltinSim());
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "^$");
}

// A9
TEST_F(StaticDestructionDeathTest, DevicesOfTheNewestStaticObjectsCloseAtExit) {
  EXPECT_EXIT(
      {
        OpenBuiltinSim();
        static Owners newest;
        newest.Open(Instrumented(OpenBuiltinSim()));
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "^$");
}

// A9: what could not be given back is still logged then.
TEST_F(StaticDestructionDeathTest, AFailureAtExitIsLogged) {
  EXPECT_EXIT(
      {
        static Owners oldest;
        oldest.Open(OpenBuiltinSim());
        // The logger is there before the exit, and newer than what logs.
        SetLogLevel(LogLevel::kWarn);
        oldest.device->retries().Add({"a stuck thing", [] { return Internal("stuck"); }});
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "a stuck thing");
}

}  // namespace
}  // namespace keel::hal
