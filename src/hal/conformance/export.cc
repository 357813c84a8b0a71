// Virtual memory, part four: physical memory that leaves through a descriptor.

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "hal/conformance/child.h"
#include "hal/conformance/context.h"

namespace keel::hal::conformance {
namespace {

// Maps imported memory by itself, for reading and writing.
struct Imported {
  static Result<Imported> Create(CaseContext& context, int descriptor, Bytes size) {
    Imported imported;
    KEEL_ASSIGN(imported.memory, PhysicalMemory::Import(context.shared(), descriptor, size));
    KEEL_ASSIGN(imported.range, AddressRange::Create(context.shared(), size));
    const std::array grants = {AccessGrant{context.device().id(), Access::kReadWrite}};
    KEEL_ASSIGN(imported.mapping,
                Mapping::Create(imported.range, Offset(0), imported.memory, grants));
    return imported;
  }
  DeviceAddress address() const { return mapping.address(); }

  PhysicalMemory memory;
  AddressRange range;
  Mapping mapping;
};

KEEL_CONFORMANCE_CASE(Export, ImportIsTheSameMemory, .needs = {&Capabilities::exportable_memory}) {
  const Bytes size = context.granule() * 2;
  ASSERT_VALUE(MappedMemory original,
               MappedMemory::Create(context.shared(), size, {}, {.exportable = true}));
  ASSERT_VALUE(UniqueFd descriptor, original.memory().Export());
  ASSERT_TRUE(descriptor.valid());
  ASSERT_VALUE(Imported imported, Imported::Create(context, descriptor.get(), size));
  // The descriptor stays the caller's.
  EXPECT_NE(fcntl(descriptor.get(), F_GETFD), -1);
  const std::vector<std::byte> there = Pattern(size.count(), 1);
  ASSERT_OK(context.WriteBytes(original.address(), there));
  EXPECT_TRUE(context.HoldsBytes(imported.address(), there));
  const std::vector<std::byte> back = Pattern(size.count(), 2);
  ASSERT_OK(context.WriteBytes(imported.address(), back));
  EXPECT_TRUE(context.HoldsBytes(original.address(), back));
  // The import outlives the original and the descriptor.
  descriptor.Reset(-1);
  ASSERT_OK(original.Close());
  EXPECT_TRUE(context.HoldsBytes(imported.address(), back));
}

KEEL_CONFORMANCE_CASE(Export, TheDescriptorKeepsTheMemory,
                      .needs = {&Capabilities::exportable_memory}) {
  const Bytes size = context.granule();
  ASSERT_VALUE(MappedMemory original,
               MappedMemory::Create(context.shared(), size, {}, {.exportable = true}));
  const std::vector<std::byte> bytes = Pattern(size.count(), 3);
  ASSERT_OK(context.WriteBytes(original.address(), bytes));
  ASSERT_VALUE(const UniqueFd descriptor, original.memory().Export());
  ASSERT_OK(original.Close());
  // Somebody else takes memory in between, and writes it.
  ASSERT_VALUE(MappedMemory other, MappedMemory::Create(context.shared(), size));
  ASSERT_OK(context.WriteBytes(other.address(), Pattern(size.count(), 4)));
  ASSERT_VALUE(Imported imported, Imported::Create(context, descriptor.get(), size));
  EXPECT_TRUE(context.HoldsBytes(imported.address(), bytes));
}

KEEL_CONFORMANCE_CASE(Export, CanBeImportedSeveralTimes,
                      .needs = {&Capabilities::exportable_memory}) {
  const Bytes size = context.granule();
  ASSERT_VALUE(MappedMemory original,
               MappedMemory::Create(context.shared(), size, {}, {.exportable = true}));
  ASSERT_VALUE(const UniqueFd first, original.memory().Export());
  ASSERT_VALUE(const UniqueFd second, original.memory().Export());
  EXPECT_NE(first.get(), second.get());
  ASSERT_VALUE(Imported a, Imported::Create(context, first.get(), size));
  ASSERT_VALUE(Imported b, Imported::Create(context, first.get(), size));
  ASSERT_VALUE(Imported c, Imported::Create(context, second.get(), size));
  const std::vector<std::byte> bytes = Pattern(size.count(), 5);
  ASSERT_OK(context.WriteBytes(b.address(), bytes));
  EXPECT_TRUE(context.HoldsBytes(a.address(), bytes));
  EXPECT_TRUE(context.HoldsBytes(c.address(), bytes));
  EXPECT_TRUE(context.HoldsBytes(original.address(), bytes));
}

KEEL_CONFORMANCE_CASE(Export, IsDecidedAtCreation, .needs = {&Capabilities::exportable_memory}) {
  ASSERT_VALUE(PhysicalMemory memory, PhysicalMemory::Create(context.shared(), context.granule()));
  const Status status = StatusOf(context.device().ExportMemory(memory.handle()));
  EXPECT_TRUE(HasCode({StatusCode::kFailedPrecondition, StatusCode::kInvalidArgument}, status));
  EXPECT_CODE(kInvalidArgument, context.device().ExportMemory(MemoryHandle{}));
}

KEEL_CONFORMANCE_CASE(Export, OtherDescriptorsAreRefused,
                      .needs = {&Capabilities::exportable_memory}) {
  Device& device = context.device();
  const Bytes granule = context.granule();
  ASSERT_VALUE(PhysicalMemory memory,
               PhysicalMemory::Create(context.shared(), granule * 2, {.exportable = true}));
  ASSERT_VALUE(const UniqueFd descriptor, memory.Export());
  for (const Bytes size : {Bytes(0), granule * 2 + 1_B}) {
    EXPECT_CODE(kInvalidArgument, device.ImportMemory(descriptor.get(), size)) << ToString(size);
  }
  if (context.join().checks_import_size) {
    for (const Bytes size : {granule, granule * 4}) {
      EXPECT_CODE(kInvalidArgument, device.ImportMemory(descriptor.get(), size)) << ToString(size);
    }
  }
  EXPECT_CODE(kInvalidArgument, device.ImportMemory(-1, granule));
  EXPECT_CODE(kInvalidArgument, device.ImportMemory(1 << 20, granule));
  const UniqueFd file(open("/dev/null", O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(file.valid());
  EXPECT_CODE(kInvalidArgument, device.ImportMemory(file.get(), granule));
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  EXPECT_CODE(kInvalidArgument, device.ImportMemory(reader.get(), granule));
  // A file of the right size is not memory either.
  char path[] = "/tmp/keel_conformance_XXXXXX";
  const UniqueFd regular(mkstemp(path));
  ASSERT_TRUE(regular.valid());
  unlink(path);
  ASSERT_EQ(ftruncate(regular.get(), static_cast<off_t>(granule.count())), 0);
  EXPECT_CODE(kInvalidArgument, device.ImportMemory(regular.get(), granule));
  EXPECT_TRUE(context.Works());
}

constexpr std::uint32_t kFromParent = 21;
constexpr std::uint32_t kFromChild = 22;

KEEL_CONFORMANCE_HELPER(Export, OtherProcess) {
  const Bytes size(std::stoull(ChildArgument()));
  ASSERT_VALUE(Imported imported, Imported::Create(context, kInheritedDescriptor, size));
  EXPECT_TRUE(context.HoldsBytes(imported.address(), Pattern(size.count(), kFromParent)));
  ASSERT_OK(context.WriteBytes(imported.address(), Pattern(size.count(), kFromChild)));
}

KEEL_CONFORMANCE_CASE(Export, OtherProcessSharesTheBytes,
                      .needs = {&Capabilities::exportable_memory}) {
  const Bytes size = context.granule() * 2;
  ASSERT_VALUE(MappedMemory original,
               MappedMemory::Create(context.shared(), size, {}, {.exportable = true}));
  ASSERT_OK(context.WriteBytes(original.address(), Pattern(size.count(), kFromParent)));
  ASSERT_VALUE(const UniqueFd descriptor, original.memory().Export());
  context.RunHelper("Export.OtherProcess", std::to_string(size.count()), descriptor.get());
  EXPECT_TRUE(context.HoldsBytes(original.address(), Pattern(size.count(), kFromChild)));
}

// The parent has given everything back when the child looks: only the descriptor is left.
KEEL_CONFORMANCE_CASE(Export, OtherProcessKeepsTheMemory,
                      .needs = {&Capabilities::exportable_memory}) {
  const Bytes size = context.granule();
  ASSERT_VALUE(MappedMemory original,
               MappedMemory::Create(context.shared(), size, {}, {.exportable = true}));
  ASSERT_OK(context.WriteBytes(original.address(), Pattern(size.count(), kFromParent)));
  ASSERT_VALUE(const UniqueFd descriptor, original.memory().Export());
  ASSERT_OK(original.Close());
  context.RunHelper("Export.OtherProcess", std::to_string(size.count()), descriptor.get());
  ASSERT_VALUE(Imported imported, Imported::Create(context, descriptor.get(), size));
  EXPECT_TRUE(context.HoldsBytes(imported.address(), Pattern(size.count(), kFromChild)));
}

}  // namespace
}  // namespace keel::hal::conformance
