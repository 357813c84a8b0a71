#include "dlpack.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "errors.h"
#include "storage.h"

namespace keel::python {
namespace {

constexpr const char* kNames[] = {"dltensor", "dltensor_versioned"};
constexpr const char* kUsedNames[] = {"used_dltensor", "used_dltensor_versioned"};

// --- Ours for others ---------------------------------------------------------------------------

// What an exported tensor keeps alive. Exactly one of `storage` and `host` is there.
template <class Managed>
struct Export {
  Managed managed;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::shared_ptr<Storage> storage;
  std::unique_ptr<std::byte[]> host;
};

// A capsule that nobody took gives back what is in it.
template <class Managed>
void DropCapsule(PyObject* capsule) {
  constexpr const char* kName = kNames[std::is_same_v<Managed, dlpack::Versioned>];
  if (PyCapsule_IsValid(capsule, kName) == 0) return;
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, kName));
  managed->deleter(managed);
}

struct Exported {
  std::vector<std::int64_t> shape;
  dlpack::DataType dtype;
  dlpack::Device device;
  bool read_only = false;
};

template <class Managed>
nb::object MakeCapsule(const Exported& what, std::shared_ptr<Storage> storage, bool to_host) {
  auto made = std::make_unique<Export<Managed>>();
  void* data = nullptr;
  if (to_host) {
    made->host = std::make_unique<std::byte[]>(storage->size().count());
    data = made->host.get();
    Check(WithoutInterpreter([&] { return storage->CopyToHost(data, storage->size()); }));
  } else {
    // An address of the device, which only the device and its library can use.
    data = reinterpret_cast<void*>(storage->address().value());
    made->storage = std::move(storage);
  }
  made->shape = what.shape;
  made->strides.resize(what.shape.size());
  std::int64_t stride = 1;
  for (std::size_t i = what.shape.size(); i-- > 0;) {
    made->strides[i] = stride;
    stride *= what.shape[i];
  }
  Managed& managed = made->managed;
  managed.tensor = {.data = data,
                    .device = what.device,
                    .ndim = static_cast<std::int32_t>(what.shape.size()),
                    .dtype = what.dtype,
                    .shape = made->shape.data(),
                    .strides = made->strides.data()};
  managed.context = made.get();
  managed.deleter = [](Managed* self) { delete static_cast<Export<Managed>*>(self->context); };
  constexpr bool kVersioned = std::is_same_v<Managed, dlpack::Versioned>;
  if constexpr (kVersioned) {
    managed.flags = (to_host ? dlpack::kIsCopied : 0) | (what.read_only ? dlpack::kReadOnly : 0);
  }
  PyObject* const capsule = PyCapsule_New(&managed, kNames[kVersioned], &DropCapsule<Managed>);
  if (capsule == nullptr) throw nb::python_error();
  static_cast<void>(made.release());  // the capsule's
  return nb::steal(capsule);
}

nb::object ExportCapsule(const StorageRef& storage, std::vector<std::int64_t> shape, int code,
                         int bits, int device_type, int device_id, bool versioned, bool read_only) {
  const Exported what{
      .shape = std::move(shape),
      .dtype = {.code = static_cast<std::uint8_t>(code), .bits = static_cast<std::uint8_t>(bits)},
      .device = {.type = device_type, .id = device_id},
      .read_only = read_only};
  const bool to_host = device_type == static_cast<int>(dlpack::DeviceType::kHost);
  return versioned ? MakeCapsule<dlpack::Versioned>(what, storage.Get(), to_host)
                   : MakeCapsule<dlpack::Unversioned>(what, storage.Get(), to_host);
}

// --- Others' for us ------------------------------------------------------------------------------

// A tensor that was taken out of its capsule, and is given back once.
class Taken {
 public:
  explicit Taken(nb::handle capsule) {
    for (const bool versioned : {true, false}) {
      if (PyCapsule_IsValid(capsule.ptr(), kNames[versioned]) == 0) continue;
      void* const pointer = PyCapsule_GetPointer(capsule.ptr(), kNames[versioned]);
      if (versioned) {
        versioned_ = static_cast<dlpack::Versioned*>(pointer);
        if (versioned_->major != 1) {
          throw nb::buffer_error(("this is DLPack of version " + std::to_string(versioned_->major) +
                                  "; Keel reads version 1")
                                     .c_str());
        }
      } else {
        unversioned_ = static_cast<dlpack::Unversioned*>(pointer);
      }
      if (PyCapsule_SetName(capsule.ptr(), kUsedNames[versioned]) != 0) throw nb::python_error();
      return;
    }
    throw nb::type_error("this is no DLPack capsule, or somebody took its tensor already");
  }
  ~Taken() {
    // The owner may be an object of Python's; after the end of the interpreter it is gone anyway.
    if (Py_IsInitialized() == 0) return;
    const nb::gil_scoped_acquire acquire;
    if (versioned_ != nullptr && versioned_->deleter != nullptr) versioned_->deleter(versioned_);
    if (unversioned_ != nullptr && unversioned_->deleter != nullptr) {
      unversioned_->deleter(unversioned_);
    }
  }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;

  const dlpack::Tensor& tensor() const {
    return versioned_ != nullptr ? versioned_->tensor : unversioned_->tensor;
  }
  bool read_only() const {
    return versioned_ != nullptr && (versioned_->flags & dlpack::kReadOnly) != 0;
  }
  std::byte* data() const { return static_cast<std::byte*>(tensor().data) + tensor().byte_offset; }

 private:
  dlpack::Versioned* versioned_ = nullptr;
  dlpack::Unversioned* unversioned_ = nullptr;
};

struct ImportRef {
  std::shared_ptr<Taken> taken;
  const dlpack::Tensor& tensor() const { return taken->tensor(); }
};

nb::object Numbers(const std::int64_t* values, std::int32_t count) {
  nb::list list;
  for (std::int32_t i = 0; i < count; ++i) list.append(values[i]);
  return nb::tuple(list);
}

// The caller has checked that the tensor has no gaps and how many bytes it has.
StorageRef Adopt(const ImportRef& self, const StreamRef& stream, std::uint64_t size) {
  const DeviceAddress address(reinterpret_cast<std::uintptr_t>(self.taken->data()));
  return {Storage::Adopt(stream.Get(), address, Bytes(size),
                         [taken = self.taken]() mutable { taken.reset(); })};
}

void CopyInto(const ImportRef& self, const StorageRef& destination) {
  const std::shared_ptr<Storage> storage = destination.Get();
  Check(WithoutInterpreter(
      [&] { return storage->CopyFromHost(self.taken->data(), storage->size()); }));
}

}  // namespace

void BindDlpack(nb::module_& m) {
  nb::class_<ImportRef>(m, "DlpackTensor")
      .def_prop_ro(
          "shape",
          [](const ImportRef& self) { return Numbers(self.tensor().shape, self.tensor().ndim); })
      .def_prop_ro("strides",
                   [](const ImportRef& self) -> nb::object {
                     if (self.tensor().strides == nullptr) return nb::none();
                     return Numbers(self.tensor().strides, self.tensor().ndim);
                   })
      .def_prop_ro("dtype",
                   [](const ImportRef& self) {
                     const dlpack::DataType& dtype = self.tensor().dtype;
                     return nb::make_tuple(dtype.code, dtype.bits, dtype.lanes);
                   })
      .def_prop_ro("device",
                   [](const ImportRef& self) {
                     return nb::make_tuple(self.tensor().device.type, self.tensor().device.id);
                   })
      .def_prop_ro("address",
                   [](const ImportRef& self) {
                     return reinterpret_cast<std::uintptr_t>(self.taken->data());
                   })
      .def_prop_ro("read_only", [](const ImportRef& self) { return self.taken->read_only(); })
      .def("adopt", &Adopt, nb::arg("stream"), nb::arg("size"))
      .def("copy_into", &CopyInto, nb::arg("destination"));
  m.def(
      "take_dlpack", [](nb::handle capsule) { return ImportRef{std::make_shared<Taken>(capsule)}; },
      nb::arg("capsule"));
  m.def("dlpack_capsule", &ExportCapsule, nb::arg("storage"), nb::arg("shape"), nb::arg("code"),
        nb::arg("bits"), nb::arg("device_type"), nb::arg("device_id"), nb::arg("versioned"),
        nb::arg("read_only"));
}

}  // namespace keel::python
