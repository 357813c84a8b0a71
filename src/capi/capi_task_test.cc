// Tasks of the C interface where C is not enough: threads, forks. What every function does is in
// capi_task_test.c.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "base/forked_child_test.h"
#include "base/soon_test.h"
#include "keel/base/log.h"
#include "keel/c.h"
#include "keel/memory/process_memory.h"

namespace keel::capi {
namespace {

using ::testing::HasSubstr;

class CapiTaskTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("KEEL_DRIVER", "sim", 1);
    setenv("KEEL_SIM", "devices:2,memory:1GiB,arena:16GiB", 1);
    SetLogLevel(LogLevel::kOff);
    Open();
  }
  void TearDown() override {
    if (orchestrator_ != nullptr) Close();
    SetLogLevel(LogLevel::kWarn);
    EXPECT_TRUE(memory::ProcessMemory::Global().Shutdown().ok());
  }
  void Open() {
    const char* const devices[] = {"sim:0", "sim:1"};
    keel_orchestrator_options options{};
    options.struct_size = sizeof options;
    options.devices = devices;
    options.device_count = 2;
    ASSERT_EQ(keel_orchestrator_create(&options, &orchestrator_), KEEL_STATUS_OK)
        << keel_last_error_message();
  }
  void Close() {
    EXPECT_EQ(keel_orchestrator_close(std::exchange(orchestrator_, nullptr)), KEEL_STATUS_OK);
  }
  std::uint64_t Register(keel_task_function function, void* data,
                         keel_destroy_function destroy = nullptr) {
    std::uint64_t callable = 0;
    EXPECT_EQ(keel_orchestrator_register_function(orchestrator_, function, data, destroy, nullptr,
                                                  0, &callable),
              KEEL_STATUS_OK)
        << keel_last_error_message();
    return callable;
  }
  keel_task Submit(std::uint64_t callable) {
    keel_task task = nullptr;
    EXPECT_EQ(keel_task_submit(orchestrator_, callable, nullptr, nullptr, &task), KEEL_STATUS_OK)
        << keel_last_error_message();
    return task;
  }
  // And closes it.
  static keel_status Outcome(keel_task task) {
    const keel_status status = keel_task_wait(task, -1);
    EXPECT_EQ(keel_task_close(task), KEEL_STATUS_OK);
    return status;
  }

  keel_orchestrator orchestrator_ = nullptr;
};

TEST_F(CapiTaskTest, WhatAFunctionThrowsIsAnError) {
  const std::uint64_t throws = Register(
      [](const keel_task_context*, void*) -> keel_status { throw std::runtime_error("thrown"); },
      nullptr);
  EXPECT_EQ(Outcome(Submit(throws)), KEEL_STATUS_INTERNAL);
  EXPECT_THAT(keel_last_error_message(), HasSubstr("it threw: thrown"));
}

struct Gate {
  std::atomic<int> calls = 0;
  std::promise<void> begun;
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  std::atomic<int> destroyed = 0;
};

keel_status WaitAtGate(const keel_task_context*, void* data) {
  auto& gate = *static_cast<Gate*>(data);
  if (++gate.calls == 1) gate.begun.set_value();
  gate.released.wait();
  return KEEL_STATUS_OK;
}

TEST_F(CapiTaskTest, TheDataOfAFunctionLivesUntilItsLastTaskHasEnded) {
  Gate gate;
  const std::uint64_t waits =
      Register(WaitAtGate, &gate, [](void* data) { ++static_cast<Gate*>(data)->destroyed; });
  const keel_task task = Submit(waits);
  gate.begun.get_future().wait();
  EXPECT_EQ(keel_orchestrator_unregister(orchestrator_, waits), KEEL_STATUS_OK);
  std::int32_t done = 1;
  EXPECT_EQ(keel_task_get_done(task, &done), KEEL_STATUS_OK);
  EXPECT_EQ(done, 0);
  EXPECT_EQ(keel_task_wait(task, 1000), KEEL_STATUS_DEADLINE_EXCEEDED);
  EXPECT_EQ(gate.destroyed, 0);
  gate.release.set_value();
  EXPECT_EQ(Outcome(task), KEEL_STATUS_OK);
  EXPECT_TRUE(Soon([&] { return gate.destroyed == 1; }));
}

TEST_F(CapiTaskTest, ClosingEndsWhatHasNotStarted) {
  Gate gate;
  const std::uint64_t waits =
      Register(WaitAtGate, &gate, [](void* data) { ++static_cast<Gate*>(data)->destroyed; });
  const keel_task first = Submit(waits);
  keel_task last = nullptr;
  for (int i = 0; i < 300; ++i) {
    if (last != nullptr) {
      EXPECT_EQ(keel_task_close(last), KEEL_STATUS_OK);
    }
    last = Submit(waits);
  }
  gate.begun.get_future().wait();
  std::thread waiter([&] { EXPECT_EQ(keel_task_wait(last, -1), KEEL_STATUS_CANCELLED); });
  const keel_orchestrator orchestrator = orchestrator_;
  std::thread closer([&] { Close(); });
  // It waits for what runs, and its handle is none any more.
  EXPECT_TRUE(Soon([&] {
    std::uint32_t count = 0;
    return keel_orchestrator_get_worker_count(orchestrator, &count) == KEEL_STATUS_INVALID_ARGUMENT;
  }));
  waiter.join();
  gate.release.set_value();
  closer.join();
  EXPECT_EQ(Outcome(first), KEEL_STATUS_OK);
  EXPECT_EQ(keel_task_close(last), KEEL_STATUS_OK);
  EXPECT_EQ(gate.destroyed, 1);
}

TEST_F(CapiTaskTest, ACallEndsWithItsFunction) {
  struct Kept {
    keel_task_call call = nullptr;
    keel_stream stream = nullptr;
    keel_device device = nullptr;
  } kept;
  const std::uint64_t keeps = Register(
      [](const keel_task_context* context, void* data) -> keel_status {
        *static_cast<Kept*>(data) = {context->call, context->stream, context->device};
        return KEEL_STATUS_OK;
      },
      &kept);
  EXPECT_EQ(Outcome(Submit(keeps)), KEEL_STATUS_OK);
  EXPECT_EQ(keel_task_call_launch(kept.call, 0, nullptr, nullptr, 0), KEEL_STATUS_INVALID_ARGUMENT);
  EXPECT_THAT(keel_last_error_message(), HasSubstr("task call that was closed"));
  EXPECT_EQ(keel_stream_destroy(kept.stream), KEEL_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(keel_device_close(kept.device), KEEL_STATUS_INVALID_ARGUMENT);
}

TEST_F(CapiTaskTest, AForkedChildIsRefused) {
  const std::uint64_t callable =
      Register([](const keel_task_context*, void*) -> keel_status { return KEEL_STATUS_OK; }, {});
  EXPECT_EQ(Outcome(Submit(callable)), KEEL_STATUS_OK);
  const keel_task task = Submit(callable);
  const int status = InForkedChild([&] {
    std::uint64_t address = 0;
    keel_task other = nullptr;
    for (const keel_status each :
         {keel_worker_malloc(orchestrator_, 0, 64, &address),
          keel_task_submit(orchestrator_, callable, nullptr, nullptr, &other),
          keel_task_wait(task, 0), keel_orchestrator_close(orchestrator_)}) {
      EXPECT_EQ(each, KEEL_STATUS_FAILED_PRECONDITION) << keel_last_error_message();
    }
    EXPECT_THAT(keel_last_error_message(), HasSubstr("fork"));
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(Outcome(task), KEEL_STATUS_OK);
}

}  // namespace
}  // namespace keel::capi
