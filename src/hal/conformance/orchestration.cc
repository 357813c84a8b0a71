// Orchestration code in the device's memory, and the kernels that it launches.

#include "keel/hal/orchestration.h"

#include <array>

#include "hal/conformance/context.h"

namespace keel::hal::conformance {
namespace {

constexpr std::uint64_t kWords = 1024;
constexpr Bytes kSize = Bytes(kWords * 4);

// The code on the device, two kernels that it may launch, and a buffer for them.
struct Rig {
  static Result<Rig> Create(CaseContext& context) {
    Rig rig;
    const std::vector<std::byte>& code = context.join().orchestration;
    if (code.empty()) {
      return FailedPrecondition("the device has a controller: Join::orchestration must be given");
    }
    KEEL_ASSIGN(rig.stream, context.NewStream());
    KEEL_ASSIGN(rig.code, context.NewPlain(Bytes(code.size())));
    KEEL_ASSIGN(rig.arguments, context.NewPlain(4_KiB));
    KEEL_ASSIGN(rig.table, context.NewPlain(4_KiB));
    KEEL_ASSIGN(rig.outcome, context.NewPlain(4_KiB));
    KEEL_ASSIGN(rig.buffer, context.NewPlain(kSize));
    KEEL_TRY(context.WriteBytes(rig.code.address(), code));
    KEEL_TRY(context.Write(rig.buffer.address(), std::vector<std::uint32_t>(kWords, 1)));
    KEEL_ASSIGN(rig.module,
                Module::Load(context.shared(),
                             ModuleSource::Device(rig.code.address(), Bytes(code.size()))));
    KEEL_ASSIGN(rig.entry, rig.module.Find(kOrchestrationEntry));
    KEEL_ASSIGN(const KernelHandle fill, context.Kernel(kernels::kFill));
    KEEL_ASSIGN(const KernelHandle reduce, context.Kernel(kernels::kReduce));
    KEEL_TRY(
        context.Write(rig.table.address(), std::vector<std::uint64_t>{fill.value, reduce.value}));
    return rig;
  }

  // Runs the code with these words, and waits.
  Result<OrchestrationOutcome> Run(CaseContext& context, const std::vector<std::uint64_t>& words) {
    KEEL_TRY(context.Write(arguments.address(), words));
    const std::array args = {
        KernelArg::In(arguments.address(), Bytes(words.size() * 8)),
        KernelArg::In(table.address(), Bytes(16)),
        KernelArg::Out(outcome.address(), Bytes(sizeof(OrchestrationOutcome)))};
    KEEL_TRY(context.device().LaunchKernel(stream.get(), {.kernel = entry, .args = args}));
    KEEL_TRY(stream.Synchronize(InTime()));
    KEEL_ASSIGN(const auto read, context.Read<OrchestrationOutcome>(outcome.address(), 1));
    return read.front();
  }

  Stream stream;
  PlainMemory code;
  PlainMemory arguments;
  PlainMemory table;
  PlainMemory outcome;
  PlainMemory buffer;
  Module module;
  KernelHandle entry;
};

KEEL_CONFORMANCE_CASE(Orchestration, LaunchesKernelsInOrder,
                      .needs = {&Capabilities::orchestration}) {
  ASSERT_VALUE(Rig rig, Rig::Create(context));
  const std::uint64_t to = rig.buffer.address().value();
  std::vector<std::uint64_t> words = {0, 0};
  for (std::uint64_t value = 1; value <= 50; ++value) {
    words.insert(words.end(), {0, to, value, kWords});
  }
  words.insert(words.end(), {0, to, 99, kWords / 2});
  ASSERT_VALUE(const OrchestrationOutcome outcome, rig.Run(context, words));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.launched, 51u);
  EXPECT_STREQ(outcome.message, "");
  EXPECT_TRUE(context.HoldsWord(rig.buffer.address(), kWords / 2, 99));
  EXPECT_TRUE(context.HoldsWord(rig.buffer.address() + kSize / 2, kWords / 2, 50));
  // And what comes later on the stream comes after them.
  ASSERT_OK(context.LaunchFill(rig.stream.get(), rig.buffer.address(), 7, kWords));
  ASSERT_OK(rig.stream.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsWord(rig.buffer.address(), kWords, 7));
}

KEEL_CONFORMANCE_CASE(Orchestration, SaysWhatTheCodeReturned,
                      .needs = {&Capabilities::orchestration}) {
  ASSERT_VALUE(Rig rig, Rig::Create(context));
  ASSERT_VALUE(const OrchestrationOutcome outcome, rig.Run(context, {42, 0}));
  EXPECT_EQ(outcome.code, 42);
  EXPECT_EQ(outcome.launched, 0u);
  EXPECT_STREQ(outcome.message, "as it was told");
  EXPECT_TRUE(context.Works());
}

// A kernel that is not in the table, and one that takes other arguments where the driver can tell.
KEEL_CONFORMANCE_CASE(Orchestration, ARefusedLaunchFailsTheCall,
                      .needs = {&Capabilities::orchestration}) {
  ASSERT_VALUE(Rig rig, Rig::Create(context));
  const std::uint64_t to = rig.buffer.address().value();
  std::vector<std::uint64_t> wrong = {2};
  if (context.join().checks_kernel_arguments) wrong.push_back(1);
  for (const std::uint64_t kernel : wrong) {
    for (const std::uint64_t ignore : {0u, 1u}) {
      SCOPED_TRACE(testing::Message() << "kernel " << kernel << ", ignored " << ignore);
      ASSERT_OK(context.Write(rig.buffer.address(), std::vector<std::uint32_t>(kWords, 1)));
      ASSERT_VALUE(
          const OrchestrationOutcome outcome,
          rig.Run(context, {0, ignore, 0, to, 5, kWords, kernel, to, 6, kWords, 0, to, 7, kWords}));
      EXPECT_EQ(outcome.code, static_cast<int>(StatusCode::kInvalidArgument));
      EXPECT_EQ(outcome.launched, 1u + ignore);
      EXPECT_STRNE(outcome.message, "");
      EXPECT_TRUE(context.HoldsWord(rig.buffer.address(), kWords, ignore != 0 ? 7 : 5));
    }
  }
  EXPECT_TRUE(context.Works());
}

KEEL_CONFORMANCE_CASE(Orchestration, CodeMustBeInMemoryThatTheDeviceCanRead,
                      .needs = {&Capabilities::orchestration}) {
  Device& device = context.device();
  EXPECT_CODE(kInvalidArgument, device.LoadModule(ModuleSource::Device({}, Bytes(4096))));
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  EXPECT_CODE(kInvalidArgument,
              device.LoadModule(ModuleSource::Device(memory.address(), Bytes(0))));
  ASSERT_OK(context.WriteBytes(memory.address(), Pattern(4096, 3)));
  EXPECT_CODE(kInvalidArgument, device.LoadModule(ModuleSource::Device(memory.address(), 4_KiB)));
  ASSERT_VALUE(Rig rig, Rig::Create(context));
  EXPECT_CODE(kNotFound, rig.module.Find("keel_orchestrat"));
  EXPECT_TRUE(context.Works());
}

}  // namespace
}  // namespace keel::hal::conformance
