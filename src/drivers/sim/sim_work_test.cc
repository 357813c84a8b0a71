// Streams, modules and faults of the simulated device, beyond the conformance suite.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "keel/drivers/sim.h"
#include "keel/hal/driver.h"
#include "keel/hal/event.h"
#include "keel/hal/graph.h"
#include "keel/hal/memory.h"
#include "keel/hal/module.h"
#include "keel/hal/standard_kernels.h"
#include "keel/hal/stream.h"

namespace keel::sim {
namespace {

using hal::KernelArg;
using hal::Location;
using ::testing::HasSubstr;

std::shared_ptr<hal::Device> OpenOne(const SimConfig& config = {}) {
  static std::vector<std::unique_ptr<hal::Driver>> drivers;  // outlive the devices
  drivers.push_back(*CreateSimDriver(config));
  return *drivers.back()->Open(0);
}

// A host call that appends a letter. The streams of one test may run it at once.
struct Letters {
  std::string Read() {
    MutexLock lock(mutex);
    return text;
  }
  Mutex mutex;
  std::string text KEEL_GUARDED_BY(mutex);
};
struct Letter {
  Letters* letters;
  char letter;
  static void Append(void* data) {
    auto* self = static_cast<Letter*>(data);
    MutexLock lock(self->letters->mutex);
    self->letters->text += self->letter;
  }
};

TEST(SimStreamTest, AHeldStreamStartsNothingUntilItIsReleasedAsOftenAsHeld) {
  const auto device = OpenOne();
  Controls& controls = *FindControls(*device);
  const auto stream = *hal::Stream::Create(device);
  Letters letters;
  Letter a{&letters, 'a'};
  ASSERT_TRUE(controls.HoldStream(stream.get()).ok());
  ASSERT_TRUE(controls.HoldStream(stream.get()).ok());
  ASSERT_TRUE(device->CallHost(stream.get(), {Letter::Append, &a}).ok());
  const auto bound = std::chrono::milliseconds(20);
  EXPECT_EQ(stream.Synchronize(Deadline::After(bound)).code(), StatusCode::kDeadlineExceeded);
  ASSERT_TRUE(controls.ReleaseStream(stream.get()).ok());
  EXPECT_EQ(stream.Synchronize(Deadline::After(bound)).code(), StatusCode::kDeadlineExceeded);
  ASSERT_TRUE(controls.ReleaseStream(stream.get()).ok());
  EXPECT_TRUE(stream.Synchronize().ok());
  EXPECT_EQ(letters.Read(), "a");
  EXPECT_EQ(controls.ReleaseStream(stream.get()).code(), StatusCode::kFailedPrecondition);
}

// A library that waits by polling an event must not find the stream still busy afterwards.
TEST(SimStreamTest, AStreamIsDoneWhenItsLastEventIs) {
  const auto device = OpenOne();
  const auto stream = *hal::Stream::Create(device);
  const auto event = *hal::Event::Create(device);
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(event.Record(stream.get()).ok());
    while (*device->QueryEvent(event.get()) == hal::Completion::kPending) {
    }
    ASSERT_EQ(*device->QueryStream(stream.get()), hal::Completion::kDone) << i;
    ASSERT_TRUE(event.Record(stream.get()).ok());
    while (*device->QueryStream(stream.get()) == hal::Completion::kPending) {
    }
    ASSERT_EQ(*device->QueryEvent(event.get()), hal::Completion::kDone) << i;
  }
}

TEST(SimStreamTest, ClosingADeviceWithAHeldStreamDoesNotHang) {
  auto device = OpenOne();
  auto stream = *hal::Stream::Create(device);
  Letters letters;
  Letter a{&letters, 'a'};
  ASSERT_TRUE(FindControls(*device)->HoldStream(stream.get()).ok());
  ASSERT_TRUE(device->CallHost(stream.get(), {Letter::Append, &a}).ok());
  ASSERT_TRUE(stream.Close().ok());
  stream = {};
  device.reset();
  EXPECT_EQ(letters.Read(), "") << "what was queued behind the hold is dropped";
}

// Which of two streams runs first, for a seed; with an event between them or without.
std::string OrderOfTwoStreams(std::uint64_t seed, bool ordered) {
  const auto device = OpenOne({.seed = seed, .delay_us = 300});
  const auto first = *hal::Stream::Create(device);
  const auto second = *hal::Stream::Create(device);
  const auto event = *hal::Event::Create(device);
  Letters letters;
  Letter a{&letters, 'a'};
  Letter b{&letters, 'b'};
  EXPECT_TRUE(device->CallHost(first.get(), {Letter::Append, &a}).ok());
  EXPECT_TRUE(event.Record(first.get()).ok());
  if (ordered) {
    EXPECT_TRUE(device->WaitEvent(second.get(), event.get()).ok());
  }
  EXPECT_TRUE(device->CallHost(second.get(), {Letter::Append, &b}).ok());
  EXPECT_TRUE(device->Synchronize(Deadline::Never()).ok());
  return letters.Read();
}

TEST(SimStreamTest, SeededDelaysExposeAMissingWaitAndRespectOneThatIsThere) {
  bool swapped = false;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    EXPECT_EQ(OrderOfTwoStreams(seed, /*ordered=*/true), "ab") << "seed " << seed;
    swapped = swapped || OrderOfTwoStreams(seed, /*ordered=*/false) == "ba";
  }
  EXPECT_TRUE(swapped) << "no seed showed the missing wait";
}

TEST(SimStreamTest, GraphNodesRunInAnyAllowedOrderWithDelays) {
  std::vector<std::string> seen;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto device = OpenOne({.seed = seed, .delay_us = 10});
    const auto stream = *hal::Stream::Create(device);
    const auto graph = *hal::Graph::Create(device);
    Letters letters;
    Letter a{&letters, 'a'}, b{&letters, 'b'}, c{&letters, 'c'};
    const auto node_a = *device->AddNode(graph.get(), {}, hal::HostCall{Letter::Append, &a});
    const auto node_b = *device->AddNode(graph.get(), {}, hal::HostCall{Letter::Append, &b});
    const hal::NodeHandle both[] = {node_a, node_b};
    ASSERT_TRUE(device->AddNode(graph.get(), both, hal::HostCall{Letter::Append, &c}).ok());
    const auto exec = *hal::GraphExec::Create(graph);
    ASSERT_TRUE(exec.Launch(stream.get()).ok());
    ASSERT_TRUE(stream.Synchronize().ok());
    ASSERT_TRUE(letters.Read() == "abc" || letters.Read() == "bac") << letters.Read();
    seen.push_back(letters.Read());
  }
  EXPECT_THAT(seen, testing::AllOf(testing::Contains("abc"), testing::Contains("bac")));
}

// --- Modules -----------------------------------------------------------------------------------

void ExpectDoubles(const std::shared_ptr<hal::Device>& device, const hal::ModuleSource& source) {
  auto module = hal::Module::Load(device, source);
  ASSERT_TRUE(module.ok()) << module.status().ToString();
  const auto kernel = *module->Find("double");
  const auto stream = *hal::Stream::Create(device);
  const auto memory = *hal::HostMemory::Create(device, 4_KiB);
  auto* values = static_cast<std::uint64_t*>(memory.data());
  values[0] = 21;
  const KernelArg argument = KernelArg::InOut(*memory.address(), 8_B);
  ASSERT_TRUE(FindControls(*device)->HoldStream(stream.get()).ok());
  ASSERT_TRUE(device->LaunchKernel(stream.get(), {kernel, {}, {&argument, 1}}).ok());
  // The code stays loaded for work that is queued.
  ASSERT_TRUE(module->Close().ok());
  EXPECT_EQ(device->LaunchKernel(stream.get(), {kernel, {}, {&argument, 1}}).code(),
            StatusCode::kInvalidArgument);
  ASSERT_TRUE(FindControls(*device)->ReleaseStream(stream.get()).ok());
  ASSERT_TRUE(stream.Synchronize().ok());
  EXPECT_EQ(values[0], 42u);
}

TEST(SimModuleTest, ASharedObjectIsAModuleFromItsFileAndFromItsBytes) {
  const auto device = OpenOne();
  ExpectDoubles(device, hal::ModuleSource::File(KEEL_TEST_MODULE));
  std::ifstream file(KEEL_TEST_MODULE, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  ASSERT_FALSE(bytes.empty());
  ExpectDoubles(device, hal::ModuleSource::Image(std::as_bytes(std::span(bytes))));
}

TEST(SimModuleTest, WhatIsNotAModuleIsNamed) {
  const auto device = OpenOne();
  const auto error = [&](const hal::ModuleSource& source) {
    return device->LoadModule(source).status();
  };
  const Status missing = error(hal::ModuleSource::File("/nonexistent/module.so"));
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("/nonexistent/module.so"));
  const std::string text = "not an ELF file";
  EXPECT_EQ(error(hal::ModuleSource::Image(std::as_bytes(std::span(text)))).code(),
            StatusCode::kInvalidArgument);
  const std::string truncated =
      "\x7f"
      "ELF and no more";
  EXPECT_EQ(error(hal::ModuleSource::Image(std::as_bytes(std::span(truncated)))).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(error(hal::ModuleSource::Registered("nobody")).code(), StatusCode::kNotFound);
}

TEST(SimModuleTest, BadDefinitionsAreRefused) {
  const KernelDefinition nameless{"", [](KernelContext&) {}, {}};
  EXPECT_EQ(RegisterKernels("bad", {&nameless, 1}).code(), StatusCode::kInvalidArgument);
  const KernelDefinition twice[] = {{"k", [](KernelContext&) {}, {}},
                                    {"k", [](KernelContext&) {}, {}}};
  EXPECT_EQ(RegisterKernels("bad", twice).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(RegisterKernels("keel", {}).code(), StatusCode::kAlreadyExists);
  const KernelParameter large{hal::Access::kNone, KernelArg::kMaxArguments + 1};
  const KernelDefinition too_large{"k", [](KernelContext&) {}, {&large, 1}};
  EXPECT_EQ(RegisterKernels("bad", {&too_large, 1}).code(), StatusCode::kInvalidArgument);
}

template <std::size_t kSize>
struct Block {
  std::byte bytes[kSize];
};
// Two values and where they go.
template <std::size_t kSize>
void StoreTwo(KernelContext& context) {
  const std::span<std::byte> to = context.Buffer<std::byte>(2);
  const Block<kSize> values[] = {context.Value<Block<kSize>>(0), context.Value<Block<kSize>>(1)};
  std::memcpy(to.data(), values, sizeof(values));
}

// A value travels whole, whatever its size: small ones in the argument, larger ones behind it.
template <std::size_t kSize>
void ExpectValuesArrive(const std::shared_ptr<hal::Device>& device) {
  SCOPED_TRACE(kSize);
  const KernelParameter parameters[] = {KernelParameter::Value<Block<kSize>>(),
                                        KernelParameter::Value<Block<kSize>>(),
                                        KernelParameter::Out()};
  const KernelDefinition definition{"store", StoreTwo<kSize>, parameters};
  const std::string set = "two values of " + std::to_string(kSize);
  ASSERT_TRUE(RegisterKernels(set, {&definition, 1}).ok());
  const auto module = *hal::Module::Load(device, hal::ModuleSource::Registered(set));
  const auto stream = *hal::Stream::Create(device);
  const auto memory = *hal::PlainMemory::Create(device, Bytes(2 * kSize));
  std::vector<std::byte> values(2 * kSize);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::byte>(i * 13 + 1);
  const std::vector<std::byte> want = values;
  const KernelArg args[] = {KernelArg::ValueAt(values.data(), kSize),
                            KernelArg::ValueAt(values.data() + kSize, kSize),
                            KernelArg::Out(memory.address(), Bytes(2 * kSize))};
  Controls* const controls = FindControls(*device);
  ASSERT_TRUE(controls->HoldStream(stream.get()).ok());
  ASSERT_TRUE(device->LaunchKernel(stream.get(), {*module.Find("store"), {}, args}).ok());
  values.assign(values.size(), std::byte{0});
  ASSERT_TRUE(controls->ReleaseStream(stream.get()).ok());
  std::vector<std::byte> got(2 * kSize);
  ASSERT_TRUE(
      device
          ->EnqueueCopy(stream.get(), {.destination = hal::Location::Host(got.data()),
                                       .source = hal::Location::On(device->id(), memory.address()),
                                       .size = Bytes(got.size())})
          .ok());
  EXPECT_EQ(got, want);
}

TEST(SimKernelTest, ValuesOfEverySizeArrive) {
  const auto device = OpenOne();
  ExpectValuesArrive<1>(device);
  ExpectValuesArrive<8>(device);
  ExpectValuesArrive<16>(device);
  ExpectValuesArrive<17>(device);
  ExpectValuesArrive<24>(device);
  ExpectValuesArrive<1000>(device);
  ExpectValuesArrive<2040>(device);
}

TEST(SimKernelTest, ArgumentsThatDoNotFitAreNamedAtLaunch) {
  const auto device = OpenOne();
  const auto module = *hal::Module::LoadStandard(device);
  const auto fill = *module.Find(hal::kernels::kFill);
  const auto stream = *hal::Stream::Create(device);
  const auto launch = [&](std::vector<KernelArg> args) {
    const Status status = device->LaunchKernel(stream.get(), {fill, {}, args});
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  const auto out = KernelArg::Out(DeviceAddress(4096), 4_B);
  const auto in = KernelArg::In(DeviceAddress(4096), 4_B);
  const auto value = KernelArg::Value(std::uint32_t{1});
  const auto count = KernelArg::Value(std::uint64_t{1});
  EXPECT_THAT(launch({out, value}), HasSubstr("takes 3 arguments"));
  EXPECT_THAT(launch({out, out, count}), HasSubstr("argument 1"));
  EXPECT_THAT(launch({out, value, value}), HasSubstr("argument 2"));
  EXPECT_THAT(launch({in, value, count}), HasSubstr("argument 0"));
}

// --- Faults ------------------------------------------------------------------------------------

TEST(SimFaultTest, AnAddressFoundInATableIsCheckedLikeAnyOther) {
  const auto device = OpenOne();
  const auto module = *hal::Module::LoadStandard(device);
  const auto copy_table = *module.Find(hal::kernels::kCopyTable);
  const auto stream = *hal::Stream::Create(device);
  const auto table = *hal::HostMemory::Create(device, 4_KiB);
  const auto memory = *hal::MappedMemory::Create(device, 2_MiB);
  const auto hole = *hal::AddressRange::Create(device, 2_MiB);
  // A piece, (row, offset, bytes), and its row, (destination, source).
  const std::uint64_t words[] = {0, 0, 64, memory.address().value(), hole.address().value()};
  std::memcpy(table.data(), words, sizeof(words));
  const KernelArg args[] = {KernelArg::In(*table.address(), 24_B),
                            KernelArg::In(*table.address() + 24_B, 16_B),
                            KernelArg::Value(std::uint64_t{1})};
  ASSERT_TRUE(device->LaunchKernel(stream.get(), {copy_table, {}, args}).ok());
  const Status status = stream.Synchronize();
  EXPECT_EQ(status.code(), StatusCode::kDeviceLost);
  EXPECT_THAT(std::string(status.message()), HasSubstr(ToString(hole.address())));
  EXPECT_THAT(std::string(status.message()), HasSubstr("keel_copy_table"));
}

TEST(SimFaultTest, WhatWasMappedWhenItWasQueuedAndIsNotWhenItRunsIsAFault) {
  const auto device = OpenOne();
  const auto stream = *hal::Stream::Create(device);
  auto memory = *hal::MappedMemory::Create(device, 2_MiB);
  const DeviceAddress address = memory.address();
  ASSERT_TRUE(FindControls(*device)->HoldStream(stream.get()).ok());
  ASSERT_TRUE(device->EnqueueFill(stream.get(), {address, 1, 1, 16}).ok());
  ASSERT_TRUE(memory.Close().ok());
  ASSERT_TRUE(FindControls(*device)->ReleaseStream(stream.get()).ok());
  const Status status = stream.Synchronize();
  EXPECT_EQ(status.code(), StatusCode::kDeviceLost);
  EXPECT_THAT(std::string(status.message()), HasSubstr(ToString(address)));
}

TEST(SimFaultTest, ALossEndsEveryWaitOnTheDevice) {
  const auto device = OpenOne();
  const auto held = *hal::Stream::Create(device);
  const auto waiting = *hal::Stream::Create(device);
  const auto event = *hal::Event::Create(device);
  ASSERT_TRUE(FindControls(*device)->HoldStream(held.get()).ok());
  ASSERT_TRUE(event.Record(held.get()).ok());
  ASSERT_TRUE(device->WaitEvent(waiting.get(), event.get()).ok());
  std::thread waiter([&] {
    EXPECT_EQ(event.Synchronize().code(), StatusCode::kDeviceLost);
    EXPECT_EQ(waiting.Synchronize().code(), StatusCode::kDeviceLost);
  });
  FindControls(*device)->Lose("a test");
  waiter.join();
  EXPECT_EQ(event.Query().status().code(), StatusCode::kDeviceLost);
}

}  // namespace
}  // namespace keel::sim
