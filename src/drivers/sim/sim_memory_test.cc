// What the simulated device promises about memory beyond the conformance suite: the host cannot
// touch it, untouched memory is free, and the host kernel's mappings are not used up.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "keel/base/unique_fd.h"
#include "keel/drivers/sim.h"
#include "keel/hal/driver.h"
#include "keel/hal/memory.h"
#include "keel/hal/module.h"
#include "keel/hal/stream.h"

namespace keel::sim {
namespace {

using hal::Access;
using hal::AccessGrant;
using hal::Location;
using ::testing::HasSubstr;

struct Machine {
  explicit Machine(const SimConfig& config) : driver(*CreateSimDriver(config)) {
    for (int i = 0; i < config.devices; ++i) devices.push_back(*driver->Open(i));
  }
  std::unique_ptr<hal::Driver> driver;
  std::vector<std::shared_ptr<hal::Device>> devices;
};

Status Put(const hal::Stream& stream, DeviceAddress to, const void* from, Bytes size) {
  return stream.device()->EnqueueCopy(
      stream.get(), {Location::On(stream.device()->id(), to), Location::Host(from), size});
}

Status Get(const hal::Stream& stream, void* to, DeviceAddress from, Bytes size) {
  return stream.device()->EnqueueCopy(
      stream.get(), {Location::Host(to), Location::On(stream.device()->id(), from), size});
}

// Of shared memory only: simulated memory is, what a sanitizer keeps for itself is not.
std::size_t ResidentSharedKiB() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.rfind("RssShmem:", 0) == 0) return std::stoul(line.substr(9));
  }
  ADD_FAILURE() << "no RssShmem in /proc/self/status";
  return 0;
}

TEST(SimMemoryDeathTest, AHostReadOfADeviceAddressFaults) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  Machine machine({});
  const auto memory = hal::MappedMemory::Create(machine.devices[0], 2_MiB);
  ASSERT_TRUE(memory.ok());
  const volatile char* pointer = reinterpret_cast<const char*>(memory->address().value());
  EXPECT_DEATH({ [[maybe_unused]] const char byte = *pointer; }, "");
  const auto plain = hal::PlainMemory::Create(machine.devices[0], 1_MiB);
  pointer = reinterpret_cast<const char*>(plain->address().value());
  EXPECT_DEATH({ [[maybe_unused]] const char byte = *pointer; }, "");
}

TEST(SimMemoryTest, TheKernelRefusesTheHostADeviceAddress) {
  Machine machine({});
  const auto memory = *hal::MappedMemory::Create(machine.devices[0], 2_MiB);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd read_end(ends[0]);
  const UniqueFd write_end(ends[1]);
  EXPECT_EQ(write(write_end.get(), reinterpret_cast<const void*>(memory.address().value()), 1), -1);
  EXPECT_EQ(errno, EFAULT);
}

TEST(SimMemoryTest, MemoryThatNobodyTouchesCostsNothing) {
  Machine machine({.memory = 80_GiB});
  const auto memory = hal::MappedMemory::Create(machine.devices[0], 80_GiB);
  ASSERT_TRUE(memory.ok()) << memory.status().ToString();
  EXPECT_LT(ResidentSharedKiB(), 1024u);
  EXPECT_EQ(machine.devices[0]->GetMemoryInfo()->free, Bytes(0));
}

TEST(SimMemoryTest, ReleasedMemoryIsGivenBackToTheHost) {
  Machine machine({.memory = 1_GiB});
  const auto stream = *hal::Stream::Create(machine.devices[0]);
  for (int round = 0; round < 8; ++round) {
    const auto memory = *hal::MappedMemory::Create(machine.devices[0], 128_MiB);
    ASSERT_TRUE(machine.devices[0]
                    ->EnqueueFill(stream.get(), {memory.address(), 0x11, 1, memory.size().count()})
                    .ok());
    ASSERT_TRUE(stream.Synchronize().ok());
  }
  EXPECT_LT(ResidentSharedKiB(), 1024u);
}

TEST(SimMemoryTest, FortyThousandSeparateMappingsDoNotExhaustTheHostKernel) {
  constexpr std::size_t kCount = 40'000;
  // A granule is left free between any two, so that no two are neighbours.
  constexpr Bytes kDistance = 2_MiB + 64_KiB;
  Machine machine({.memory = 80_GiB, .granularity = 64_KiB});
  hal::Device& device = *machine.devices[0];
  const auto range = hal::AddressRange::Create(machine.devices[0], kDistance * kCount);
  ASSERT_TRUE(range.ok()) << range.status().ToString();
  const AccessGrant grant{device.id(), Access::kReadWrite};
  std::vector<hal::PhysicalMemory> memories;
  std::vector<hal::Mapping> mappings;
  for (std::size_t i = 0; i < kCount; ++i) {
    memories.push_back(*hal::PhysicalMemory::Create(machine.devices[0], 2_MiB));
    auto mapping =
        hal::Mapping::Create(*range, Offset(i * kDistance.count()), memories.back(), {&grant, 1});
    ASSERT_TRUE(mapping.ok()) << i << ": " << mapping.status().ToString();
    mappings.push_back(*std::move(mapping));
  }
  EXPECT_LT(FindControls(device)->host_mappings(), 100u);
  // They are real: the first, the last and one between hold their own bytes.
  const auto stream = *hal::Stream::Create(machine.devices[0]);
  for (const std::size_t i : {std::size_t{0}, kCount / 2, kCount - 1}) {
    std::uint64_t value = i * 17 + 1, back = 0;
    ASSERT_TRUE(Put(stream, mappings[i].address(), &value, Bytes(8)).ok());
    ASSERT_TRUE(Get(stream, &back, mappings[i].address(), Bytes(8)).ok());
    EXPECT_EQ(back, value);
  }
}

TEST(SimMemoryTest, MappingsThatTheHostKernelCannotHoldAreRefusedByName) {
  Machine machine({.memory = 1_GiB, .mappings = 16});
  // Aliases at another offset each take mappings of the host.
  const auto first = *hal::MappedMemory::Create(machine.devices[0], 2_MiB);
  const auto range = *hal::AddressRange::Create(machine.devices[0], 256_MiB);
  std::vector<hal::Mapping> aliases;
  Status refused;
  for (std::uint64_t i = 0; refused.ok() && i < 64; ++i) {
    auto alias = hal::Mapping::Create(range, Offset(i * 4_MiB .count()), first.memory());
    if (alias.ok()) {
      aliases.push_back(*std::move(alias));
    } else {
      refused = alias.status();
    }
  }
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("mappings:16"));
  EXPECT_EQ(aliases.size(), 7u) << "two host mappings for each alias, one for the arena";
  // Giving some back makes room again.
  aliases.pop_back();
  EXPECT_TRUE(hal::Mapping::Create(range, Offset(200_MiB .count()), first.memory()).ok());
}

TEST(SimMemoryTest, UnmappingReturnsHostMappings) {
  Machine machine({});
  Controls& controls = *FindControls(*machine.devices[0]);
  const std::size_t before = controls.host_mappings();
  const auto memory = *hal::MappedMemory::Create(machine.devices[0], 2_MiB);
  EXPECT_EQ(controls.host_mappings(), before);
  {
    const auto range = *hal::AddressRange::Create(machine.devices[0], 8_MiB);
    const auto alias = *hal::Mapping::Create(range, Offset(2_MiB .count()), memory.memory());
    EXPECT_EQ(controls.host_mappings(), before + 2);
  }
  EXPECT_EQ(controls.host_mappings(), before);
}

TEST(SimMemoryTest, NeighbouringAliasesOfNeighbouringMemoryShareAHostMapping) {
  Machine machine({});
  Controls& controls = *FindControls(*machine.devices[0]);
  const auto home = *hal::AddressRange::Create(machine.devices[0], 8_MiB);
  const auto away = *hal::AddressRange::Create(machine.devices[0], 16_MiB);
  std::vector<hal::PhysicalMemory> memories;
  std::vector<hal::Mapping> mappings;
  for (std::uint64_t i = 0; i < 4; ++i) {
    memories.push_back(*hal::PhysicalMemory::Create(machine.devices[0], 2_MiB));
    mappings.push_back(*hal::Mapping::Create(home, Offset(i * 2_MiB .count()), memories.back()));
  }
  const std::size_t before = controls.host_mappings();
  for (std::uint64_t i = 0; i < 4; ++i) {
    mappings.push_back(*hal::Mapping::Create(away, Offset((i + 2) * 2_MiB .count()), memories[i]));
  }
  EXPECT_EQ(controls.host_mappings(), before + 2);
}

// A kernel that says when it started, waits until it may go on, and then writes to its buffer.
std::atomic<bool> gate_entered{false};
std::atomic<bool> gate_open{false};

void Gate(KernelContext& context) {
  gate_entered = true;
  while (!gate_open) std::this_thread::yield();
  context.Buffer<std::uint64_t>(0)[0] = 7;
}

hal::KernelHandle LoadGate(const std::shared_ptr<hal::Device>& device, hal::Module* module) {
  static constexpr KernelParameter kParameters[] = {KernelParameter::InOut()};
  static const Status registered = [] {
    const KernelDefinition definition{"gate", Gate, kParameters};
    return RegisterKernels("sim_memory_test", {&definition, 1});
  }();
  EXPECT_TRUE(registered.ok());
  gate_entered = gate_open = false;
  *module = *hal::Module::Load(device, hal::ModuleSource::Registered("sim_memory_test"));
  return *module->Find("gate");
}

TEST(SimMemoryTest, UnmapDoesNotWaitAndARunningKernelKeepsItsMemory) {
  Machine machine({});
  const auto& device = machine.devices[0];
  hal::Module module;
  const hal::KernelHandle gate = LoadGate(device, &module);
  const auto stream = *hal::Stream::Create(device);
  const auto other = *hal::Stream::Create(device);
  const AccessGrant grant{device->id(), Access::kReadWrite};
  const auto range = *hal::AddressRange::Create(device, 2_MiB);
  auto first = *hal::PhysicalMemory::Create(device, 2_MiB);
  auto mapping = *hal::Mapping::Create(range, Offset(0), first, {&grant, 1});

  const hal::KernelArg argument = hal::KernelArg::InOut(mapping.address(), 8_B);
  ASSERT_TRUE(device->LaunchKernel(stream.get(), {gate, {}, {&argument, 1}}).ok());
  while (!gate_entered) std::this_thread::yield();
  ASSERT_TRUE(mapping.Close().ok()) << "unmapping must not wait for the kernel";
  ASSERT_TRUE(first.Close().ok());
  EXPECT_EQ(FindControls(*device)->used(), 2_MiB) << "the kernel still has its memory";

  // Other memory at the same address, while the kernel still runs on the first.
  const auto second = *hal::PhysicalMemory::Create(device, 2_MiB);
  const auto again = hal::Mapping::Create(range, Offset(0), second, {&grant, 1});
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  const std::uint64_t value = 42;
  ASSERT_TRUE(Put(other, again->address(), &value, Bytes(8)).ok());
  EXPECT_EQ(*other.Query(), hal::Completion::kPending) << "the address shows the old memory";

  gate_open = true;
  ASSERT_TRUE(stream.Synchronize().ok());
  ASSERT_TRUE(other.Synchronize().ok());
  std::uint64_t back = 0;
  ASSERT_TRUE(Get(other, &back, again->address(), Bytes(8)).ok());
  EXPECT_EQ(back, 42u) << "the kernel wrote to memory that was mapped after it";
  EXPECT_EQ(FindControls(*device)->used(), 2_MiB) << "the first memory is gone";
}

TEST(SimMemoryTest, FreedHostMemoryStaysWhileAKernelUsesIt) {
  Machine machine({});
  const auto& device = machine.devices[0];
  hal::Module module;
  const hal::KernelHandle gate = LoadGate(device, &module);
  const auto stream = *hal::Stream::Create(device);
  auto host = *hal::HostMemory::Create(device, 4_KiB);
  const hal::KernelArg argument = hal::KernelArg::InOut(*host.address(), 8_B);
  ASSERT_TRUE(device->LaunchKernel(stream.get(), {gate, {}, {&argument, 1}}).ok());
  while (!gate_entered) std::this_thread::yield();
  ASSERT_TRUE(host.Close().ok());
  gate_open = true;  // the kernel now writes to it
  EXPECT_TRUE(stream.Synchronize().ok());
}

TEST(SimMemoryTest, SeparateSpacesHoldDifferentBytesAtTheSameAddress) {
  Machine machine({.devices = 2, .unified = false, .peers = false});
  std::vector<hal::MappedMemory> memory;
  std::vector<hal::Stream> stream;
  for (const auto& device : machine.devices) {
    memory.push_back(*hal::MappedMemory::Create(device, 2_MiB));
    stream.push_back(*hal::Stream::Create(device));
  }
  ASSERT_EQ(memory[0].address(), memory[1].address());
  for (std::uint64_t i = 0; i < 2; ++i) {
    const std::uint64_t value = 100 + i;
    ASSERT_TRUE(Put(stream[i], memory[i].address(), &value, Bytes(8)).ok());
  }
  for (std::uint64_t i = 0; i < 2; ++i) {
    std::uint64_t value = 0;
    ASSERT_TRUE(Get(stream[i], &value, memory[i].address(), Bytes(8)).ok());
    EXPECT_EQ(value, 100 + i);
  }
  // A copy says which device it means on both sides.
  ASSERT_TRUE(
      machine.devices[0]
          ->EnqueueCopy(stream[0].get(),
                        {Location::On(machine.devices[1]->id(), memory[1].address()),
                         Location::On(machine.devices[0]->id(), memory[0].address()), Bytes(8)})
          .ok());
  ASSERT_TRUE(stream[0].Synchronize().ok());
  std::uint64_t value = 0;
  ASSERT_TRUE(Get(stream[1], &value, memory[1].address(), Bytes(8)).ok());
  EXPECT_EQ(value, 100u);
}

}  // namespace
}  // namespace keel::sim
