// The C interface where C is not enough: threads, forks, a lost device, the end of a process. What
// every function does is in capi_test.c.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/forked_child_test.h"
#include "capi/handles.h"
#include "capi/last_error.h"
#include "keel/base/deadline.h"
#include "keel/base/log.h"
#include "keel/c.h"
#include "keel/drivers/sim.h"
#include "keel/hal/graph.h"
#include "keel/hal/module.h"
#include "keel/hal/standard_kernels.h"
#include "keel/memory/process_memory.h"

namespace keel::capi {
namespace {

using ::testing::HasSubstr;

// The enumerators of both sides never change, and are the same.
static_assert(KEEL_STATUS_OK == static_cast<int>(StatusCode::kOk));
static_assert(KEEL_STATUS_CANCELLED == static_cast<int>(StatusCode::kCancelled));
static_assert(KEEL_STATUS_UNKNOWN == static_cast<int>(StatusCode::kUnknown));
static_assert(KEEL_STATUS_INVALID_ARGUMENT == static_cast<int>(StatusCode::kInvalidArgument));
static_assert(KEEL_STATUS_DEADLINE_EXCEEDED == static_cast<int>(StatusCode::kDeadlineExceeded));
static_assert(KEEL_STATUS_NOT_FOUND == static_cast<int>(StatusCode::kNotFound));
static_assert(KEEL_STATUS_ALREADY_EXISTS == static_cast<int>(StatusCode::kAlreadyExists));
static_assert(KEEL_STATUS_PERMISSION_DENIED == static_cast<int>(StatusCode::kPermissionDenied));
static_assert(KEEL_STATUS_RESOURCE_EXHAUSTED == static_cast<int>(StatusCode::kResourceExhausted));
static_assert(KEEL_STATUS_FAILED_PRECONDITION == static_cast<int>(StatusCode::kFailedPrecondition));
static_assert(KEEL_STATUS_ABORTED == static_cast<int>(StatusCode::kAborted));
static_assert(KEEL_STATUS_OUT_OF_RANGE == static_cast<int>(StatusCode::kOutOfRange));
static_assert(KEEL_STATUS_UNIMPLEMENTED == static_cast<int>(StatusCode::kUnimplemented));
static_assert(KEEL_STATUS_INTERNAL == static_cast<int>(StatusCode::kInternal));
static_assert(KEEL_STATUS_UNAVAILABLE == static_cast<int>(StatusCode::kUnavailable));
static_assert(KEEL_STATUS_DEVICE_LOST == static_cast<int>(StatusCode::kDeviceLost));
static_assert(KEEL_STATUS_UNAUTHENTICATED == static_cast<int>(StatusCode::kUnauthenticated));

void ChooseSimulated() {
  setenv("KEEL_DRIVER", "sim", 1);
  setenv("KEEL_SIM", "devices:2,memory:1GiB,arena:16GiB", 1);
}

class CapiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ChooseSimulated();
    SetLogLevel(LogLevel::kOff);
    ASSERT_EQ(keel_device_open("sim:0", &device_), KEEL_STATUS_OK) << keel_last_error_message();
  }
  void TearDown() override {
    static_cast<void>(keel_device_close(device_));
    SetLogLevel(LogLevel::kWarn);
    ASSERT_TRUE(memory::ProcessMemory::Global().Shutdown().ok());
  }

  keel_device device_ = nullptr;
};

TEST_F(CapiTest, IsTheMemoryOfTheProcess) {
  const auto set = *memory::ProcessMemory::Global().For({.driver = "sim", .ordinal = 0});
  std::uint64_t address = 0;
  ASSERT_EQ(keel_malloc(device_, nullptr, 1000, nullptr, &address), KEEL_STATUS_OK);
  EXPECT_EQ(set->allocator().Stats().requested_bytes.all.current, 1000);
  EXPECT_TRUE(set->allocator().Free(DeviceAddress(address)).ok());
  EXPECT_EQ(keel_free(device_, address), KEEL_STATUS_INVALID_ARGUMENT);
}

TEST_F(CapiTest, EachThreadHasItsOwnMessage) {
  EXPECT_EQ(keel_free(device_, 0x1234), KEEL_STATUS_INVALID_ARGUMENT);
  std::thread([] {
    EXPECT_STREQ(keel_last_error_message(), "");
    EXPECT_EQ(keel_device_close(nullptr), KEEL_STATUS_INVALID_ARGUMENT);
    EXPECT_THAT(keel_last_error_message(), HasSubstr("NULL"));
  }).join();
  EXPECT_THAT(keel_last_error_message(), HasSubstr("0x1234"));
  // Success leaves it.
  EXPECT_EQ(keel_free(device_, 0), KEEL_STATUS_OK);
  EXPECT_THAT(keel_last_error_message(), HasSubstr("0x1234"));
}

TEST_F(CapiTest, NoExceptionGetsOut) {
  EXPECT_EQ(Guard("f", []() -> Status { throw std::bad_alloc(); }), KEEL_STATUS_RESOURCE_EXHAUSTED);
  EXPECT_EQ(Guard("f", []() -> Status { throw std::runtime_error("the reason"); }),
            KEEL_STATUS_INTERNAL);
  EXPECT_STREQ(keel_last_error_message(), "f: the reason");
  EXPECT_EQ(Guard("f", []() -> Status { throw 3; }), KEEL_STATUS_INTERNAL);
  const auto visit = [](const char*, std::int64_t, void*) { throw std::runtime_error("visitor"); };
  EXPECT_EQ(keel_for_each_stat(device_, visit, nullptr), KEEL_STATUS_INTERNAL);
  EXPECT_THAT(keel_last_error_message(), HasSubstr("visitor"));
}

// Threads open, use, close and misuse each other's handles.
TEST_F(CapiTest, AnyThreadAtAnyTime) {
  std::vector<std::thread> threads;
  threads.reserve(4);
  std::atomic<std::uintptr_t> somebodys{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        keel_device device = nullptr;
        keel_stream stream = nullptr;
        std::uint64_t address = 0;
        ASSERT_EQ(keel_device_open("sim:1", &device), KEEL_STATUS_OK);
        ASSERT_EQ(keel_stream_create(device, &stream), KEEL_STATUS_OK);
        somebodys = reinterpret_cast<std::uintptr_t>(stream);
        ASSERT_EQ(keel_malloc(device, stream, 4096, nullptr, &address), KEEL_STATUS_OK);
        EXPECT_EQ(keel_enqueue_fill(device, stream, address, 1, 1, 4096), KEEL_STATUS_OK);
        const auto others = reinterpret_cast<keel_stream>(somebodys.load());
        const keel_status used = keel_stream_synchronize(device, others, 0);
        EXPECT_TRUE(used == KEEL_STATUS_OK || used == KEEL_STATUS_INVALID_ARGUMENT ||
                    used == KEEL_STATUS_DEADLINE_EXCEEDED)
            << keel_last_error_message();
        EXPECT_EQ(keel_free(device, address), KEEL_STATUS_OK);
        EXPECT_EQ(keel_stream_destroy(stream), KEEL_STATUS_OK) << keel_last_error_message();
        EXPECT_EQ(keel_device_close(device), KEEL_STATUS_OK);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CapiTest, ALostDeviceComesBackAfterItIsForgotten) {
  std::uint64_t address = 0;
  ASSERT_EQ(keel_malloc(device_, nullptr, 4 << 20, nullptr, &address), KEEL_STATUS_OK);
  {
    const auto set = *memory::ProcessMemory::Global().For({.driver = "sim", .ordinal = 0});
    sim::FindControls(*set->device())->Lose("for a test");
  }
  EXPECT_EQ(keel_stream_synchronize(device_, nullptr, -1), KEEL_STATUS_DEVICE_LOST);
  EXPECT_EQ(keel_free(device_, address), KEEL_STATUS_OK);
  ASSERT_EQ(keel_device_forget(device_), KEEL_STATUS_OK) << keel_last_error_message();
  ASSERT_EQ(keel_device_open("sim:0", &device_), KEEL_STATUS_OK) << keel_last_error_message();
  EXPECT_EQ(keel_malloc(device_, nullptr, 4 << 20, nullptr, &address), KEEL_STATUS_OK);
  EXPECT_EQ(keel_free(device_, address), KEEL_STATUS_OK);
}

TEST_F(CapiTest, AForkedChildIsRefused) {
  keel_stream stream = nullptr;
  std::uint64_t address = 0;
  ASSERT_EQ(keel_stream_create(device_, &stream), KEEL_STATUS_OK);
  ASSERT_EQ(keel_malloc(device_, stream, 4096, nullptr, &address), KEEL_STATUS_OK);
  std::optional<WorkingThread> busy([&] {
    keel_device other = nullptr;
    if (keel_device_open("sim:0", &other) == KEEL_STATUS_OK) {
      static_cast<void>(keel_device_close(other));
    }
  });
  for (int round = 0; round < kForks; ++round) {
    const int status = InForkedChild([&] {
      keel_device other = nullptr;
      for (const keel_status each :
           {keel_free(device_, address), keel_malloc(device_, stream, 1, nullptr, &address),
            keel_stream_destroy(stream), keel_device_close(device_),
            keel_device_open("sim:0", &other), keel_write_snapshot(nullptr, "unused", 0)}) {
        EXPECT_EQ(each, KEEL_STATUS_FAILED_PRECONDITION) << keel_last_error_message();
      }
      EXPECT_THAT(keel_last_error_message(), HasSubstr("fork"));
    });
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << " in " << round;
  }
  busy.reset();
  EXPECT_EQ(keel_free(device_, address), KEEL_STATUS_OK);
  EXPECT_EQ(keel_stream_destroy(stream), KEEL_STATUS_OK);
}

// --- Graphs
// ---------------------------------------------------------------------------------------

class CapiGraphTest : public CapiTest {
 protected:
  // y, in place, is filled with sevens; before that `function` is called.
  keel_executable Make(keel_trace_function function, void* data, int slots = 2,
                       decltype(&keel_program_builder_traced) add = keel_program_builder_traced) {
    keel_executable_options options{};
    options.struct_size = sizeof options;
    options.slots = slots;
    keel_executable executable = nullptr;
    EXPECT_EQ(Create(function, data, options, &executable, add), KEEL_STATUS_OK);
    return executable;
  }
  keel_status Create(keel_trace_function function, void* data,
                     const keel_executable_options& options, keel_executable* executable,
                     decltype(&keel_program_builder_traced) add = keel_program_builder_traced) {
    keel_program_builder builder = nullptr;
    keel_program program = nullptr;
    EXPECT_EQ(keel_program_builder_create(device_, "sevens", &builder), KEEL_STATUS_OK);
    EXPECT_EQ(
        keel_program_builder_bind(builder, "y", 64, KEEL_BINDING_OUT, KEEL_POLICY_IN_PLACE, &y_),
        KEEL_STATUS_OK);
    const keel_operand whole{.binding = y_, .access = KEEL_ACCESS_WRITE, .offset = 0, .extent = 0};
    if (function != nullptr) {
      EXPECT_EQ(add(builder, "function", &whole, 1, function, data, nullptr), KEEL_STATUS_OK);
    }
    EXPECT_EQ(keel_program_builder_fill(builder, &whole, 7, 1), KEEL_STATUS_OK);
    EXPECT_EQ(keel_program_builder_build(builder, &program), KEEL_STATUS_OK)
        << keel_last_error_message();
    const keel_status status = keel_executable_create(program, &options, executable);
    EXPECT_EQ(keel_program_close(program), KEEL_STATUS_OK);
    return status;
  }

  std::uint32_t y_ = 0;
};

TEST_F(CapiGraphTest, WhatAFunctionThrowsIsAnError) {
  const auto throws = [](const keel_trace_context*, void*) -> keel_status {
    throw std::runtime_error("the reason");
  };
  keel_executable executable = Make(throws, nullptr);
  keel_lease lease = nullptr;
  ASSERT_EQ(keel_executable_acquire(executable, nullptr, -1, &lease), KEEL_STATUS_OK);
  EXPECT_EQ(keel_lease_launch(lease, -1), KEEL_STATUS_INTERNAL);
  EXPECT_THAT(keel_last_error_message(), HasSubstr("'function': it threw: the reason"));
  EXPECT_EQ(keel_lease_close(lease), KEEL_STATUS_OK);
  EXPECT_EQ(keel_executable_close(executable), KEEL_STATUS_OK);
}

TEST_F(CapiGraphTest, AHeldOutputThatIsAliasedCannotBeWritten) {
  keel_executable_options options{};
  options.struct_size = sizeof options;
  options.alias_outputs = 1;
  // A caller whose struct has no such field yet gets what it always got.
  for (const std::size_t size :
       {sizeof options, offsetof(keel_executable_options, alias_outputs)}) {
    options.struct_size = size;
    const bool aliased = size == sizeof options;
    keel_executable executable = nullptr;
    ASSERT_EQ(Create(nullptr, nullptr, options, &executable), KEEL_STATUS_OK);
    keel_lease lease = nullptr;
    keel_output output = nullptr;
    ASSERT_EQ(keel_executable_acquire(executable, nullptr, -1, &lease), KEEL_STATUS_OK);
    ASSERT_EQ(keel_lease_launch(lease, -1), KEEL_STATUS_OK) << keel_last_error_message();
    ASSERT_EQ(keel_lease_hold(lease, y_, &output), KEEL_STATUS_OK);
    std::uint64_t written = 0;
    std::uint64_t read = 0;
    std::uint64_t bytes = 0;
    EXPECT_EQ(keel_lease_get_address(lease, y_, &written), KEEL_STATUS_OK);
    EXPECT_EQ(keel_output_get(output, &read, &bytes), KEEL_STATUS_OK);
    EXPECT_EQ(read != written, aliased);
    EXPECT_EQ(bytes, 64u);
    const auto memory = *memory::ProcessMemory::Global().For({.driver = "sim", .ordinal = 0});
    const hal::Stream stream = *hal::Stream::Create(memory->device());
    ASSERT_EQ(keel_lease_wait(lease, -1), KEEL_STATUS_OK);
    std::array<char, 64> seen{};
    EXPECT_TRUE(memory
                    ->CopyToHost(stream.get(), seen.data(), DeviceAddress(read), Bytes(seen.size()),
                                 Deadline::Never())
                    .ok());
    EXPECT_THAT(seen, testing::Each(7));
    seen.fill(0);
    EXPECT_EQ(keel_copy_to_host(device_, nullptr, seen.data(), read, bytes), KEEL_STATUS_OK)
        << keel_last_error_message();
    EXPECT_THAT(seen, testing::Each(7));
    const hal::Fill fill{.destination = DeviceAddress(read), .value = 1, .width = 1, .count = 1};
    EXPECT_EQ(memory->device()->EnqueueFill(stream.get(), fill).ok(), !aliased);
    EXPECT_TRUE(stream.Synchronize(Deadline::Never()).ok());
    EXPECT_EQ(keel_output_close(output), KEEL_STATUS_OK);
    EXPECT_EQ(keel_copy_to_host(device_, nullptr, seen.data(), read, bytes),
              aliased ? KEEL_STATUS_INVALID_ARGUMENT : KEEL_STATUS_OK);
    EXPECT_EQ(keel_lease_close(lease), KEEL_STATUS_OK);
    EXPECT_EQ(keel_executable_close(executable), KEEL_STATUS_OK);
  }
  options.struct_size = sizeof options;
  options.reserved_0 = 1;
  keel_executable executable = nullptr;
  EXPECT_EQ(Create(nullptr, nullptr, options, &executable), KEEL_STATUS_INVALID_ARGUMENT);
  EXPECT_THAT(keel_last_error_message(), HasSubstr("reserved_0"));
}

TEST_F(CapiGraphTest, ALibrarysGraphIsPartOfTheStep) {
  const auto memory = *memory::ProcessMemory::Global().For({.driver = "sim", .ordinal = 0});
  struct Library {
    std::vector<hal::Graph> graphs;
    std::uint64_t address = 0;
    std::shared_ptr<hal::Device> device;
  } library{.device = memory->device()};
  ASSERT_EQ(keel_malloc(device_, nullptr, 64, nullptr, &library.address), KEEL_STATUS_OK);
  const auto records = [](const keel_trace_context* context, void* data) -> keel_status {
    auto& its = *static_cast<Library*>(data);
    if (context->capturing == 0) {
      EXPECT_EQ(context->graph, nullptr);
      return keel_enqueue_fill(context->device, context->stream, its.address, 1, 1, 64);
    }
    hal::Graph graph = *hal::Graph::Create(its.device);
    const hal::Fill fill{
        .destination = DeviceAddress(its.address), .value = 2, .width = 1, .count = 64};
    EXPECT_TRUE(its.device->AddNode(graph.get(), {}, fill).ok());
    *context->graph = graph.get().value;
    its.graphs.push_back(std::move(graph));
    return KEEL_STATUS_OK;
  };
  keel_executable executable = Make(records, &library, 1, keel_program_builder_recorded);
  for (char expected = 1; expected <= 2; ++expected) {  // the first step warms up
    keel_lease lease = nullptr;
    ASSERT_EQ(keel_executable_acquire(executable, nullptr, -1, &lease), KEEL_STATUS_OK);
    EXPECT_EQ(keel_lease_launch(lease, -1), KEEL_STATUS_OK) << keel_last_error_message();
    EXPECT_EQ(keel_lease_close(lease), KEEL_STATUS_OK);
    std::array<char, 64> bytes{};
    EXPECT_EQ(keel_copy_to_host(device_, nullptr, bytes.data(), library.address, 64),
              KEEL_STATUS_OK);
    EXPECT_THAT(bytes, testing::Each(expected));
  }
  EXPECT_EQ(library.graphs.size(), 1u);
  EXPECT_EQ(keel_executable_close(executable), KEEL_STATUS_OK);
  EXPECT_EQ(keel_free(device_, library.address), KEEL_STATUS_OK);
}

// Memory that work of the device may still use stays where it is.
TEST_F(CapiGraphTest, PhysicalMemoryIsNotClosedUnderWorkThatRuns) {
  const auto memory = *memory::ProcessMemory::Global().For({.driver = "sim", .ordinal = 0});
  const hal::Stream stream = *hal::Stream::Create(memory->device());
  sim::Controls& controls = *sim::FindControls(*memory->device());
  keel_physical_memory physical = nullptr;
  keel_stream borrowed = nullptr;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  ASSERT_EQ(keel_physical_memory_create(device_, 2 << 20, &physical), KEEL_STATUS_OK)
      << keel_last_error_message();
  ASSERT_EQ(keel_physical_memory_get(physical, &address, &size), KEEL_STATUS_OK);
  ASSERT_EQ(keel_stream_borrow(device_, stream.get().value, &borrowed), KEEL_STATUS_OK);
  ASSERT_TRUE(controls.HoldStream(stream.get()).ok());
  EXPECT_EQ(keel_enqueue_fill(device_, borrowed, address, 7, 1, size), KEEL_STATUS_OK);
  EXPECT_EQ(keel_physical_memory_close(physical, 1000), KEEL_STATUS_DEADLINE_EXCEEDED);
  EXPECT_EQ(keel_physical_memory_get(physical, &address, &size), KEEL_STATUS_OK) << "as before";
  ASSERT_TRUE(controls.ReleaseStream(stream.get()).ok());
  EXPECT_EQ(keel_physical_memory_close(physical, -1), KEEL_STATUS_OK) << keel_last_error_message();
  EXPECT_EQ(keel_stream_destroy(borrowed), KEEL_STATUS_OK);
  EXPECT_TRUE(memory->device()->Health().ok());
}

// A function that turns to what calls it is refused, and waits for nothing.
TEST_F(CapiGraphTest, AFunctionCannotUseItsOwnStep) {
  struct Handles {
    keel_executable executable = nullptr;
    keel_lease lease = nullptr;
    keel_lease second = nullptr;
    int calls = 0;
  } handles;
  const auto uses = [](const keel_trace_context* context, void* data) -> keel_status {
    auto& its = *static_cast<Handles*>(data);
    ++its.calls;
    EXPECT_EQ(keel_lease_launch(its.lease, -1), KEEL_STATUS_FAILED_PRECONDITION);
    EXPECT_THAT(keel_last_error_message(), HasSubstr("another call works with this lease"));
    EXPECT_EQ(keel_lease_launch(its.second, -1), KEEL_STATUS_FAILED_PRECONDITION);
    EXPECT_THAT(keel_last_error_message(), HasSubstr("launches a step of 'sevens'"));
    std::thread([&] {
      EXPECT_EQ(keel_lease_wait(its.lease, -1), KEEL_STATUS_FAILED_PRECONDITION);
    }).join();
    // The handles are gone at once; what is under way goes on.
    EXPECT_EQ(keel_lease_close(its.lease), KEEL_STATUS_OK);
    EXPECT_EQ(keel_executable_close(its.executable), KEEL_STATUS_OK);
    return keel_enqueue_fill(context->device, context->stream, context->addresses[0], 1, 1, 64);
  };
  handles.executable = Make(uses, &handles, 2, keel_program_builder_eager);
  const keel_executable executable = handles.executable;
  ASSERT_EQ(keel_executable_acquire(executable, nullptr, -1, &handles.lease), KEEL_STATUS_OK);
  ASSERT_EQ(keel_executable_acquire(executable, nullptr, -1, &handles.second), KEEL_STATUS_OK);
  EXPECT_EQ(keel_lease_launch(handles.lease, -1), KEEL_STATUS_OK) << keel_last_error_message();
  EXPECT_EQ(handles.calls, 1);
  EXPECT_EQ(keel_lease_close(handles.lease), KEEL_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(keel_lease_close(handles.second), KEEL_STATUS_OK);
}

// What a function was lent it cannot use afterwards.
TEST_F(CapiGraphTest, TheStreamOfACallEndsWithIt) {
  keel_stream kept = nullptr;
  const auto keeps = [](const keel_trace_context* context, void* data) -> keel_status {
    *static_cast<keel_stream*>(data) = context->stream;
    return KEEL_STATUS_OK;
  };
  keel_executable executable = Make(keeps, &kept);
  keel_lease lease = nullptr;
  ASSERT_EQ(keel_executable_acquire(executable, nullptr, -1, &lease), KEEL_STATUS_OK);
  EXPECT_EQ(keel_lease_launch(lease, -1), KEEL_STATUS_OK);
  EXPECT_EQ(keel_enqueue_fill(device_, kept, 0, 0, 1, 1), KEEL_STATUS_INVALID_ARGUMENT);
  EXPECT_THAT(keel_last_error_message(), HasSubstr("handle of a stream that was closed"));
  EXPECT_EQ(keel_lease_close(lease), KEEL_STATUS_OK);
  EXPECT_EQ(keel_executable_close(executable), KEEL_STATUS_OK);
}

// A kernel that somebody else loaded, by its native value.
TEST_F(CapiGraphTest, BorrowsKernels) {
  const auto set = *memory::ProcessMemory::Global().For({.driver = "sim", .ordinal = 0});
  const hal::Module module = *hal::Module::LoadStandard(set->device());
  const hal::KernelHandle fill = *module.Find(hal::kernels::kFill);
  keel_kernel kernel = nullptr;
  keel_program_builder builder = nullptr;
  keel_program program = nullptr;
  keel_executable executable = nullptr;
  keel_lease lease = nullptr;
  keel_output output = nullptr;
  std::uint32_t y = 0;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  ASSERT_EQ(keel_kernel_borrow(device_, fill.value, &kernel), KEEL_STATUS_OK);
  ASSERT_EQ(keel_program_builder_create(device_, "filled", &builder), KEEL_STATUS_OK);
  ASSERT_EQ(keel_program_builder_bind(builder, "y", 64, KEEL_BINDING_OUT, KEEL_POLICY_IN_PLACE, &y),
            KEEL_STATUS_OK);
  const std::uint32_t value = 0x01020304;
  const std::uint64_t count = 16;
  const keel_operand whole{.binding = y, .access = KEEL_ACCESS_WRITE, .offset = 0, .extent = 0};
  const keel_kernel_argument arguments[] = {
      {.operand = whole, .value = nullptr, .value_size = 0},
      {.operand = {}, .value = &value, .value_size = sizeof value},
      {.operand = {}, .value = &count, .value_size = sizeof count}};
  ASSERT_EQ(keel_program_builder_kernel(builder, kernel, nullptr, arguments, 3), KEEL_STATUS_OK);
  ASSERT_EQ(keel_program_builder_build(builder, &program), KEEL_STATUS_OK);
  ASSERT_EQ(keel_executable_create(program, nullptr, &executable), KEEL_STATUS_OK);
  ASSERT_EQ(keel_executable_acquire(executable, nullptr, -1, &lease), KEEL_STATUS_OK);
  ASSERT_EQ(keel_lease_launch(lease, -1), KEEL_STATUS_OK) << keel_last_error_message();
  ASSERT_EQ(keel_lease_hold(lease, y, &output), KEEL_STATUS_OK);
  ASSERT_EQ(keel_output_get(output, &address, &size), KEEL_STATUS_OK);
  std::array<std::uint32_t, 16> out{};
  ASSERT_EQ(keel_copy_to_host(device_, nullptr, out.data(), address, size), KEEL_STATUS_OK);
  EXPECT_THAT(out, ::testing::Each(value));
  EXPECT_EQ(keel_output_close(output), KEEL_STATUS_OK);
  EXPECT_EQ(keel_lease_close(lease), KEEL_STATUS_OK);
  EXPECT_EQ(keel_executable_close(executable), KEEL_STATUS_OK);
  EXPECT_EQ(keel_program_close(program), KEEL_STATUS_OK);
  EXPECT_EQ(keel_kernel_close(kernel), KEEL_STATUS_OK);
}

TEST_F(CapiGraphTest, ThreadsShareAnExecutable) {
  std::atomic<int> inside{0};
  const auto alone = [](const keel_trace_context* context, void* data) -> keel_status {
    auto& its = *static_cast<std::atomic<int>*>(data);
    EXPECT_EQ(its.fetch_add(1), 0) << "one at a time";
    const keel_status status =
        keel_enqueue_fill(context->device, context->stream, context->addresses[0], 1, 1, 64);
    its.fetch_sub(1);
    return status;
  };
  const keel_executable executable = Make(alone, &inside);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      keel_stream stream = nullptr;
      ASSERT_EQ(keel_stream_create(device_, &stream), KEEL_STATUS_OK);
      for (int step = 0; step < 25; ++step) {
        keel_lease lease = nullptr;
        keel_output output = nullptr;
        std::uint64_t address = 0;
        std::uint64_t size = 0;
        std::array<unsigned char, 64> out{};
        ASSERT_EQ(keel_executable_acquire(executable, stream, -1, &lease), KEEL_STATUS_OK);
        ASSERT_EQ(keel_lease_launch(lease, -1), KEEL_STATUS_OK) << keel_last_error_message();
        ASSERT_EQ(keel_lease_hold(lease, y_, &output), KEEL_STATUS_OK);
        ASSERT_EQ(keel_lease_close(lease), KEEL_STATUS_OK);
        ASSERT_EQ(keel_output_get(output, &address, &size), KEEL_STATUS_OK);
        ASSERT_EQ(keel_copy_to_host(device_, stream, out.data(), address, size), KEEL_STATUS_OK);
        EXPECT_THAT(out, ::testing::Each(7));
        ASSERT_EQ(keel_output_close(output), KEEL_STATUS_OK) << keel_last_error_message();
      }
      EXPECT_EQ(keel_stream_destroy(stream), KEEL_STATUS_OK) << keel_last_error_message();
    });
  }
  for (std::thread& thread : threads) thread.join();
  keel_executable_stats stats{};
  stats.struct_size = sizeof stats;
  EXPECT_EQ(keel_executable_get_stats(executable, &stats), KEEL_STATUS_OK);
  EXPECT_EQ(stats.steps, 100U);
  EXPECT_EQ(keel_executable_close(executable), KEEL_STATUS_OK);
}

TEST_F(CapiGraphTest, AForkedChildIsRefused) {
  const keel_executable executable = Make(nullptr, nullptr);
  keel_lease lease = nullptr;
  ASSERT_EQ(keel_executable_acquire(executable, nullptr, -1, &lease), KEEL_STATUS_OK);
  const int status = InForkedChild([&] {
    keel_lease other = nullptr;
    EXPECT_EQ(keel_executable_acquire(executable, nullptr, -1, &other),
              KEEL_STATUS_FAILED_PRECONDITION);
    EXPECT_EQ(keel_lease_launch(lease, -1), KEEL_STATUS_FAILED_PRECONDITION);
    EXPECT_EQ(keel_lease_close(lease), KEEL_STATUS_FAILED_PRECONDITION);
    EXPECT_EQ(keel_executable_close(executable), KEEL_STATUS_FAILED_PRECONDITION);
    EXPECT_THAT(keel_last_error_message(), HasSubstr("executable of the process"));
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(keel_lease_launch(lease, -1), KEEL_STATUS_OK);
  EXPECT_EQ(keel_lease_close(lease), KEEL_STATUS_OK);
  EXPECT_EQ(keel_executable_close(executable), KEEL_STATUS_OK);
}

TEST_F(CapiGraphTest, ALostDeviceEndsSteps) {
  const keel_executable executable = Make(nullptr, nullptr);
  keel_lease lease = nullptr;
  keel_lease late = nullptr;
  keel_lease launched = nullptr;
  ASSERT_EQ(keel_executable_acquire(executable, nullptr, -1, &launched), KEEL_STATUS_OK);
  ASSERT_EQ(keel_executable_acquire(executable, nullptr, -1, &lease), KEEL_STATUS_OK);
  int32_t done = 1;
  {
    const auto set = *memory::ProcessMemory::Global().For({.driver = "sim", .ordinal = 0});
    sim::Controls& controls = *sim::FindControls(*set->device());
    const auto stream = set->device()->GetDefaultStream(hal::DefaultStream::kLegacy);
    ASSERT_TRUE(controls.HoldStream(*stream).ok());
    ASSERT_EQ(keel_lease_launch(launched, -1), KEEL_STATUS_OK);
    EXPECT_EQ(keel_lease_get_done(launched, &done), KEEL_STATUS_OK);
    EXPECT_EQ(done, 0);
    controls.Lose("for a test");
  }
  const Deadline ends = Deadline::After(std::chrono::seconds(60));
  keel_status ended = KEEL_STATUS_OK;
  while (ended == KEEL_STATUS_OK && done == 0 && !ends.Passed()) {
    ended = keel_lease_get_done(launched, &done);
  }
  EXPECT_EQ(ended, KEEL_STATUS_DEVICE_LOST);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(keel_lease_close(launched), KEEL_STATUS_OK);
  EXPECT_EQ(keel_lease_launch(lease, -1), KEEL_STATUS_DEVICE_LOST);
  EXPECT_EQ(keel_executable_acquire(executable, nullptr, -1, &late), KEEL_STATUS_DEVICE_LOST);
  EXPECT_EQ(keel_lease_close(lease), KEEL_STATUS_OK);
  EXPECT_EQ(keel_executable_close(executable), KEEL_STATUS_OK);
  ASSERT_EQ(keel_device_forget(device_), KEEL_STATUS_OK);
  ASSERT_EQ(keel_device_open("sim:0", &device_), KEEL_STATUS_OK);
}

class CapiDeathTest : public ::testing::Test {
 protected:
  CapiDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// Static objects call when the main thread's own objects, and its message, are gone.
TEST_F(CapiDeathTest, ExitIsQuiet) {
  EXPECT_EXIT(
      {
        ChooseSimulated();
        struct Late {
          ~Late() {
            if (keel_free(device, address) != KEEL_STATUS_OK) std::abort();
            if (keel_free(device, address) != KEEL_STATUS_INVALID_ARGUMENT) std::abort();
            static_cast<void>(*keel_last_error_message());
            static_cast<void>(*keel_status_name(3));
          }
          keel_device device = nullptr;
          std::uint64_t address = 0;
        };
        static Late late;
        if (keel_device_open(nullptr, &late.device) != KEEL_STATUS_OK) std::abort();
        keel_stream stream = nullptr;
        if (keel_stream_create(late.device, &stream) != KEEL_STATUS_OK) std::abort();
        if (keel_malloc(late.device, stream, 4096, nullptr, &late.address) != KEEL_STATUS_OK) {
          std::abort();
        }
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace keel::capi
