// What is MUSA's own in its driver: that it makes do with what a library has.

#include "drivers/musa/musa_driver.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "keel/hal/device.h"

namespace keel::musa {
namespace {

// The driver on a stand-in. The library is kept, but for the driver's table of it.
std::shared_ptr<hal::Device> OpenOn(const char* standin) {
  setenv("KEEL_MUSA_LIBRARY", (std::string(KEEL_TEST_STANDINS "/") + standin).c_str(), 1);
  setenv("KEEL_STANDIN", "memory:1GiB", 1);
  const auto driver = CreateDriver();
  auto opened = driver->Open(0);
  EXPECT_TRUE(opened.ok()) << opened.status().ToString();
  return opened.ok() ? *std::move(opened) : nullptr;
}

TEST(MusaDriverTest, DescribesTheDevice) {
  const auto device = OpenOn("musa_standin.so");
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(device->info().driver, "musa");
  EXPECT_TRUE(device->info().architecture.starts_with("mp_")) << device->info().architecture;
  EXPECT_EQ(device->info().numa_node, -1);
  EXPECT_EQ(device->StandardKernels().status().code(), StatusCode::kUnimplemented);
}

TEST(MusaDriverTest, UpdatesWithTheFirstVersionOfTheCall) {
  const auto device = OpenOn("musa_standin.so");
  ASSERT_NE(device, nullptr);
  EXPECT_TRUE(device->capabilities().graphs);
  EXPECT_TRUE(device->capabilities().graph_update);
  EXPECT_TRUE(device->capabilities().node_update);
}

TEST(MusaDriverTest, WhatAnOldLibraryLacksIsNoCapability) {
  const auto device = OpenOn("musa_standin_old.so");
  ASSERT_NE(device, nullptr);
  const hal::Capabilities& can = device->capabilities();
  EXPECT_FALSE(can.virtual_memory);
  EXPECT_FALSE(can.exportable_memory);
  EXPECT_FALSE(can.value_writes);
  EXPECT_FALSE(can.value_waits);
  EXPECT_FALSE(can.graphs);
  EXPECT_FALSE(can.graph_update);
  EXPECT_FALSE(can.node_update);
  EXPECT_TRUE(can.kernels);
  EXPECT_TRUE(can.host_calls);
  EXPECT_EQ(device->CreateMemory(Bytes(1u << 21), {}).status().code(), StatusCode::kUnimplemented);
  EXPECT_EQ(device->CreateGraph().status().code(), StatusCode::kUnimplemented);
  // What is left works: streams, copies and waits do not need graphs.
  const auto memory = device->AllocatePlain(Bytes(4096));
  const auto stream = device->CreateStream({});
  ASSERT_TRUE(memory.ok()) << memory.status().ToString();
  ASSERT_TRUE(stream.ok()) << stream.status().ToString();
  std::uint32_t word = 0x600D;
  const hal::Location there = hal::Location::On(device->id(), *memory);
  const hal::Location here = hal::Location::Host(&word);
  EXPECT_TRUE(device->EnqueueCopy(*stream, {there, here, Bytes(4)}).ok());
  EXPECT_TRUE(device->Synchronize(Deadline::After(std::chrono::seconds(10))).ok());
  word = 0;
  EXPECT_TRUE(device->EnqueueCopy(*stream, {here, there, Bytes(4)}).ok());
  EXPECT_TRUE(device->SynchronizeStream(*stream, Deadline::Never()).ok());
  EXPECT_EQ(word, 0x600Du);
  EXPECT_TRUE(device->DestroyStream(*stream).ok());
  EXPECT_TRUE(device->FreePlain(*memory).ok());
}

}  // namespace
}  // namespace keel::musa
