// Image: a callable as bytes: orchestration code, and the kernels that it launches by number. One
// without orchestration code is the kernels for a function of the program (host_function.h).
//
// The bytes: a header with a version, offsets, sizes and a checksum; the list of kernels; their
// names; the orchestration code; the code of the kernels; a table of 64 bits for each kernel, of
// zeros, which a device's store fills with the kernels' addresses beside the code, never in it.
// docs/tasks.md has the layout field by field.
//
// Immutable, shared, cheap to copy. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/hal/module_source.h"

namespace keel::task {

class KEEL_EXPORT Image {
 public:
  static constexpr std::size_t kMaxSize = std::size_t{1} << 30;
  static constexpr std::size_t kMaxKernels = 1024;
  static constexpr std::size_t kMaxName = 255;

  // One kernel: its name in the module that a code part is. Several kernels may share a part.
  struct Kernel {
    std::string_view name;
    std::uint32_t part = 0;
  };

  // Trusts nothing: kInvalidArgument says what is wrong and at which offset. Copies the bytes.
  static Result<Image> Parse(std::span<const std::byte> bytes);

  std::span<const std::byte> bytes() const;
  std::span<const std::byte> orchestration() const;  // empty: kernels only
  std::size_t orchestration_offset() const;
  std::span<const Kernel> kernels() const;
  std::size_t part_count() const;
  // What LoadModule takes: bytes in the device's own format, or the name of a registered set.
  hal::ModuleSource part(std::size_t i) const;
  // Where the table of kernel addresses lies: kernels().size() * 8 bytes.
  std::size_t table_offset() const;
  // Of the bytes. Equal images have equal hashes; the reverse is for the caller to compare.
  std::uint64_t hash() const;

  // The same kernels, by the same numbers. Costs a copy of their code.
  Image WithoutOrchestration() const;

 private:
  friend class ImageBuilder;
  struct Parsed;
  explicit Image(std::shared_ptr<const Parsed> parsed);
  std::shared_ptr<const Parsed> parsed_;
};

class KEEL_EXPORT ImageBuilder {
 public:
  // A shared object that exports hal::kOrchestrationEntry.
  ImageBuilder& SetOrchestration(std::vector<std::byte> code);
  // Both return the number of the part, for AddKernel.
  std::uint32_t AddPart(std::vector<std::byte> code);
  std::uint32_t AddRegisteredPart(std::string set);
  // Returns the kernel's number, by which orchestration code launches it.
  std::uint32_t AddKernel(std::uint32_t part, std::string name);
  // kInvalidArgument names what is missing, too large, or refers to a part that is not there.
  Result<Image> Build() const;
  // The same without orchestration code, for Orchestrator::Register with a function. There may be
  // no kernels.
  Result<Image> BuildKernels() const;

 private:
  Result<Image> BuildAny() const;
  struct Part {
    std::vector<std::byte> code;
    std::string set;  // of a registered part
  };
  struct NamedKernel {
    std::uint32_t part = 0;
    std::string name;
  };
  std::vector<std::byte> orchestration_;
  std::vector<Part> parts_;
  std::vector<NamedKernel> kernels_;
};

}  // namespace keel::task
