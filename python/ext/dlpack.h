// DLPack: tensors of other libraries in the same process, and ours for them, without a copy.
//
// The structures below are the interface's own, in its layout: version 1, and the one before it
// that had none.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

namespace keel::python {

namespace dlpack {

enum class DeviceType : std::int32_t { kHost = 1 };

struct Device {
  std::int32_t type = 0;
  std::int32_t id = 0;
};

struct DataType {
  std::uint8_t code = 0;
  std::uint8_t bits = 0;
  std::uint16_t lanes = 1;
};

struct Tensor {
  void* data = nullptr;
  Device device;
  std::int32_t ndim = 0;
  DataType dtype;
  std::int64_t* shape = nullptr;
  std::int64_t* strides = nullptr;  // in elements; null: without gaps, in C's order
  std::uint64_t byte_offset = 0;
};

struct Unversioned {
  Tensor tensor;
  void* context = nullptr;
  void (*deleter)(Unversioned*) = nullptr;
};

struct Versioned {
  std::uint32_t major = 1;
  std::uint32_t minor = 0;
  void* context = nullptr;
  void (*deleter)(Versioned*) = nullptr;
  std::uint64_t flags = 0;
  Tensor tensor;
};

inline constexpr std::uint64_t kReadOnly = 1;
inline constexpr std::uint64_t kIsCopied = 2;

}  // namespace dlpack

void BindDlpack(nanobind::module_& m);

}  // namespace keel::python
