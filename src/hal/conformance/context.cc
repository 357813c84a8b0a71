#include "hal/conformance/context.h"

#include <algorithm>
#include <array>
#include <sstream>

#include "hal/conformance/child.h"
#include "keel/hal/capture_mode.h"

namespace keel::hal::conformance {

std::vector<std::byte> Pattern(std::size_t count, std::uint32_t seed) {
  std::vector<std::byte> bytes(count);
  std::uint64_t state = seed * 0x9E3779B97F4A7C15ULL + 1;
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    byte = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

testing::AssertionResult SameBytes(const std::vector<std::byte>& want,
                                   const std::vector<std::byte>& got) {
  if (want.size() != got.size()) {
    return testing::AssertionFailure() << got.size() << " bytes, want " << want.size();
  }
  const auto [at_want, at_got] = std::mismatch(want.begin(), want.end(), got.begin());
  if (at_want == want.end()) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "byte " << (at_want - want.begin()) << " of " << want.size() << " is "
         << static_cast<int>(*at_got) << ", want " << static_cast<int>(*at_want);
}

Result<std::unique_ptr<CaseContext>> CaseContext::Create(const Case& test, const Join& join) {
  std::unique_ptr<CaseContext> context(new CaseContext(test, join));
  KEEL_TRY(context->Open());
  return context;
}

CaseContext::~CaseContext() = default;

Status CaseContext::Open() {
  const int count = test_.traits.all_devices ? join_.devices : test_.traits.devices;
  KEEL_ASSIGN(const std::vector<std::shared_ptr<Device>> opened, join_.open(count));
  if (static_cast<int>(opened.size()) != count) {
    return Internal("the driver's program opened " + std::to_string(opened.size()) +
                    " devices instead of " + std::to_string(count));
  }
  for (const std::shared_ptr<Device>& device : opened) devices_.push_back(Instrumented(device));
  return OkStatus();
}

Bytes CaseContext::granule(int i) {
  const Bytes minimum = capabilities(i).granularity.minimum;
  return minimum.empty() ? 64_KiB : minimum;
}

Result<KernelHandle> CaseContext::Kernel(std::string_view name, int i) {
  const MutexLock lock(mutex_);
  auto found = modules_.find(i);
  if (found == modules_.end()) {
    KEEL_ASSIGN(Module module, Module::LoadStandard(shared(i)));
    found = modules_.emplace(i, std::move(module)).first;
  }
  return found->second.Find(name);
}

Result<Blocker> CaseContext::Block(StreamHandle stream, int i) {
  // Allocating and querying must not disturb a capture that the case is about.
  const ScopedCaptureMode relaxed(CaptureMode::kRelaxed);
  if (!capabilities(i).kernels) return Blocker::WithHook(shared(i), stream, join_);
  KEEL_ASSIGN(const KernelHandle spin, Kernel(kernels::kSpin, i));
  return Blocker::WithKernel(shared(i), stream, spin);
}

Result<StreamHandle> CaseContext::CopyStream(int i) {
  const MutexLock lock(mutex_);
  auto found = copy_streams_.find(i);
  if (found == copy_streams_.end()) {
    KEEL_ASSIGN(Stream stream, NewStream(i));
    found = copy_streams_.emplace(i, std::move(stream)).first;
  }
  return found->second.get();
}

Status CaseContext::WriteBytes(DeviceAddress to, const std::vector<std::byte>& bytes, int i) {
  const ScopedCaptureMode relaxed(CaptureMode::kRelaxed);
  KEEL_ASSIGN(const StreamHandle stream, CopyStream(i));
  KEEL_TRY(device(i).EnqueueCopy(stream, {.destination = Location::On(device(i).id(), to),
                                          .source = Location::Host(bytes.data()),
                                          .size = Bytes(bytes.size())}));
  return device(i).SynchronizeStream(stream, InTime());
}

Result<std::vector<std::byte>> CaseContext::ReadBytes(DeviceAddress from, std::size_t count,
                                                      int i) {
  const ScopedCaptureMode relaxed(CaptureMode::kRelaxed);
  std::vector<std::byte> bytes(count);
  KEEL_ASSIGN(const StreamHandle stream, CopyStream(i));
  KEEL_TRY(device(i).EnqueueCopy(stream, {.destination = Location::Host(bytes.data()),
                                          .source = Location::On(device(i).id(), from),
                                          .size = Bytes(count)}));
  KEEL_TRY(device(i).SynchronizeStream(stream, InTime()));
  return bytes;
}

testing::AssertionResult CaseContext::HoldsWord(DeviceAddress address, std::size_t count,
                                                std::uint32_t value, int i) {
  const Result<std::vector<std::uint32_t>> words = Read<std::uint32_t>(address, count, i);
  if (!words.ok()) return testing::AssertionFailure() << words.status().ToString();
  for (std::size_t at = 0; at < count; ++at) {
    if ((*words)[at] != value) {
      return testing::AssertionFailure()
             << "word " << at << " is " << (*words)[at] << ", want " << value;
    }
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult CaseContext::HoldsBytes(DeviceAddress address,
                                                 const std::vector<std::byte>& bytes, int i) {
  const Result<std::vector<std::byte>> got = ReadBytes(address, bytes.size(), i);
  if (!got.ok()) return testing::AssertionFailure() << got.status().ToString();
  return SameBytes(bytes, *got);
}

testing::AssertionResult CaseContext::Works(int i) {
  const auto try_it = [this, i]() -> Status {
    KEEL_TRY(device(i).Health());
    const std::vector<std::byte> bytes = Pattern(4096, 77);
    KEEL_ASSIGN(PlainMemory memory, NewPlain(Bytes(bytes.size()), i));
    KEEL_TRY(WriteBytes(memory.address(), bytes, i));
    KEEL_ASSIGN(const std::vector<std::byte> got, ReadBytes(memory.address(), bytes.size(), i));
    if (got != bytes) return Internal("bytes that were written are not read back");
    return memory.Close();
  };
  const Status status = try_it();
  if (status.ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "the device does not work any more: " << status.ToString();
}

Status CaseContext::LaunchFill(StreamHandle stream, DeviceAddress out, std::uint32_t value,
                               std::uint64_t n, int i) {
  KEEL_ASSIGN(const KernelHandle kernel, Kernel(kernels::kFill, i));
  const std::array args = {KernelArg::Out(out, Bytes(n * 4)), KernelArg::Value(value),
                           KernelArg::Value(n)};
  return device(i).LaunchKernel(stream, {.kernel = kernel, .args = args});
}

void CaseContext::RunHelper(const std::string& full_name, const std::string& argument,
                            int descriptor) {
  const ChildOutcome outcome = RunChild(
      {.filter = join_.driver + "/" + full_name, .argument = argument, .descriptor = descriptor});
  if (!outcome.passed) {
    ADD_FAILURE() << "the other process, " << full_name << ", " << outcome.problem
                  << "; it wrote:\n"
                  << outcome.output;
  }
}

void CaseContext::CloseOwn() {
  const MutexLock lock(mutex_);
  modules_.clear();
  copy_streams_.clear();
}

Status CaseContext::Reopen() {
  CloseOwn();
  std::vector<std::weak_ptr<Device>> before(devices_.begin(), devices_.end());
  devices_.clear();
  for (const std::weak_ptr<Device>& device : before) {
    if (!device.expired()) return Internal("the case still holds a device");
  }
  return Open();
}

void CaseContext::Finish() {
  const bool failed = testing::Test::HasFailure();
  const bool checked = !test_.traits.loses_device && !failed;
  if (checked) {
    // No work may be left that uses what is given back now.
    for (const auto& device : devices_) EXPECT_OK(device->Synchronize(InTime()));
  }
  CloseOwn();
  if (checked) {
    for (const auto& device : devices_) {
      std::ostringstream alive;
      for (const LiveObject& object : device->Live()) alive << "  " << object.ToString() << "\n";
      EXPECT_EQ(alive.str(), "") << "the case left something alive";
      EXPECT_TRUE(device->retries().empty()) << "something could not be given back";
      EXPECT_TRUE(device->Innermost().retries().empty()) << "something could not be given back";
    }
  }
  std::vector<std::weak_ptr<Device>> before(devices_.begin(), devices_.end());
  devices_.clear();
  if (checked) {
    for (const std::weak_ptr<Device>& device : before) {
      EXPECT_TRUE(device.expired()) << "the case still holds a device";
    }
  }
}

}  // namespace keel::hal::conformance
