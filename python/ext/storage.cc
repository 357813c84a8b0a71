#include "storage.h"

#include <nanobind/stl/string.h>

#include <string>
#include <utility>

#include "device.h"
#include "errors.h"

namespace keel::python {
namespace {

// Later work of `later` runs after what is on `earlier` now.
Status Order(memory::DeviceMemory& device, hal::StreamHandle earlier, hal::Device& waiter,
             hal::StreamHandle later) {
  KEEL_ASSIGN(const memory::PooledEvent event, device.events().Acquire());
  KEEL_TRY(event.Record(earlier));
  return waiter.WaitEvent(later, event.get());
}

}  // namespace

// --- Storage ----------------------------------------------------------------------------------

Result<std::shared_ptr<Storage>> Storage::Create(std::shared_ptr<OwnedStream> stream, Bytes size,
                                                 std::string_view tag) {
  memory::AllocationOptions options;
  if (!tag.empty()) options.tag = telemetry::InternTag(tag);
  KEEL_ASSIGN(auto buffer, memory::DeviceBuffer<std::byte>::Create(stream->memory(), stream->get(),
                                                                   size.count(), options));
  const std::shared_ptr<Storage> storage(new Storage);
  storage->stream_ = std::move(stream);
  storage->address_ = buffer.address();
  storage->size_ = size;
  storage->buffer_ = std::move(buffer);
  return storage;
}

std::shared_ptr<Storage> Storage::Adopt(std::shared_ptr<OwnedStream> stream, DeviceAddress address,
                                        Bytes size, std::function<void()> release,
                                        UseRecorder record_use) {
  std::shared_ptr<Storage> storage(new Storage);
  storage->stream_ = std::move(stream);
  storage->address_ = address;
  storage->size_ = size;
  storage->release_ = std::move(release);
  storage->record_use_ = std::move(record_use);
  return storage;
}

Storage::~Storage() {
  record_use_ = nullptr;
  if (release_) release_();
}

Status Storage::CopyFromHost(const void* source, Bytes size) {
  if (size.empty()) return OkStatus();
  return memory().CopyToDevice(stream_->get(), address_, source, size);
}

Status Storage::CopyToHost(void* destination, Bytes size) {
  if (size.empty()) return OkStatus();
  return memory().CopyToHost(stream_->get(), destination, address_, size);
}

Status Storage::CopyFrom(const Storage& source, Bytes size) {
  if (size.empty() || &source == this) return OkStatus();
  hal::Device& here = *memory().device();
  hal::Device& there = *source.memory().device();
  const hal::StreamHandle from = source.stream_->get();
  const hal::StreamHandle to = stream_->get();
  const bool ordered = here.id() == there.id() && from == to;
  if (!ordered) KEEL_TRY(Order(source.memory(), from, here, to));
  KEEL_TRY(here.EnqueueCopy(to, {.destination = hal::Location::On(here.id(), address_),
                                 .source = hal::Location::On(there.id(), source.address_),
                                 .size = size}));
  // So that the source may be freed or overwritten in the order of its own stream.
  return ordered ? OkStatus() : Order(memory(), to, there, from);
}

Status Storage::Clear() {
  if (size_.empty()) return OkStatus();
  return memory().device()->EnqueueFill(
      stream_->get(), {.destination = address_, .value = 0, .width = 1, .count = size_.count()});
}

Status Storage::ShareWith(hal::StreamHandle stream) {
  if (size_.empty() || stream == stream_->get()) return OkStatus();
  KEEL_TRY(Order(memory(), stream_->get(), *memory().device(), stream));
  return RecordUse(stream);
}

Status Storage::TakeBack(hal::StreamHandle stream) {
  if (size_.empty() || stream == stream_->get()) return OkStatus();
  return Order(memory(), stream, *memory().device(), stream_->get());
}

Status Storage::RecordUse(hal::StreamHandle stream, std::shared_ptr<OwnedStream> owner) {
  if (record_use_) return record_use_(stream, std::move(owner));
  // Memory of others is theirs to keep.
  return adopted() ? OkStatus() : memory().allocator().RecordUse(address_, stream);
}

std::shared_ptr<Storage> StorageRef::Get() const {
  if (owner == nullptr) {
    throw nb::value_error("this array was closed: its memory is given back");
  }
  return owner;
}

// --- For Python ---------------------------------------------------------------------------------

namespace {

// The bytes of an object that has a buffer, without gaps and in C's order.
class HostBytes {
 public:
  HostBytes(nb::handle object, bool writable) {
    const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) throw nb::python_error();
  }
  ~HostBytes() { PyBuffer_Release(&view_); }
  HostBytes(const HostBytes&) = delete;
  HostBytes& operator=(const HostBytes&) = delete;

  void* data() const { return view_.buf; }
  Bytes size() const { return Bytes(static_cast<std::uint64_t>(view_.len)); }

 private:
  Py_buffer view_{};
};

void CheckSizes(Bytes host, Bytes device) {
  if (host == device) return;
  throw nb::value_error(("the host's buffer has " + std::to_string(host.count()) +
                         " bytes, the array " + std::to_string(device.count()))
                            .c_str());
}

StorageRef Allocate(const StreamRef& stream, std::uint64_t size, const std::string& tag) {
  std::shared_ptr<OwnedStream> owner = stream.Get();
  auto storage = WithoutInterpreter([&] { return Storage::Create(owner, Bytes(size), tag); });
  if (storage.status().code() == StatusCode::kResourceExhausted) {
    Raise(storage.status(),
          WithoutInterpreter([&] { return owner->memory()->allocator().Report(); }));
  }
  return {Take(std::move(storage))};
}

void CopyFromHost(const StorageRef& self, nb::handle source) {
  const std::shared_ptr<Storage> storage = self.Get();
  const HostBytes bytes(source, false);
  CheckSizes(bytes.size(), storage->size());
  Check(WithoutInterpreter([&] { return storage->CopyFromHost(bytes.data(), bytes.size()); }));
}

void CopyToHost(const StorageRef& self, nb::handle destination) {
  const std::shared_ptr<Storage> storage = self.Get();
  const HostBytes bytes(destination, true);
  CheckSizes(bytes.size(), storage->size());
  Check(WithoutInterpreter([&] { return storage->CopyToHost(bytes.data(), bytes.size()); }));
}

void CopyFrom(const StorageRef& self, const StorageRef& other) {
  const std::shared_ptr<Storage> storage = self.Get();
  const std::shared_ptr<Storage> source = other.Get();
  CheckSizes(source->size(), storage->size());
  Check(WithoutInterpreter([&] { return storage->CopyFrom(*source, source->size()); }));
}

// --- Addresses without an owner, as PyTorch's caching_allocator_alloc hands them out -----------

std::uint64_t AllocateRaw(const StreamRef& stream, std::uint64_t size) {
  const std::shared_ptr<OwnedStream> owner = stream.Get();
  memory::DeviceAllocator& allocator = owner->memory()->allocator();
  auto address = WithoutInterpreter([&] { return allocator.Allocate(Bytes(size), owner->get()); });
  if (address.status().code() == StatusCode::kResourceExhausted) {
    Raise(address.status(), allocator.Report());
  }
  return Take(std::move(address)).value();
}

void FreeRaw(const DeviceRef& device, std::uint64_t address) {
  Check(
      WithoutInterpreter([&] { return device.memory->allocator().Free(DeviceAddress(address)); }));
}

}  // namespace

void BindStorage(nb::module_& m) {
  nb::class_<StorageRef>(m, "Storage")
      .def_prop_ro("address", [](const StorageRef& self) { return self.Get()->address().value(); })
      .def_prop_ro("size", [](const StorageRef& self) { return self.Get()->size().count(); })
      .def_prop_ro("closed", [](const StorageRef& self) { return self.owner == nullptr; })
      .def_prop_ro("stream", [](const StorageRef& self) { return StreamRef{self.Get()->stream()}; })
      .def("copy_from_host", &CopyFromHost, nb::arg("source"))
      .def("copy_to_host", &CopyToHost, nb::arg("destination"))
      .def("copy_from", &CopyFrom, nb::arg("source"))
      .def("clear", [](const StorageRef& self) { Check(self.Get()->Clear()); })
      .def(
          "record_use",
          [](const StorageRef& self, const StreamRef& stream) {
            const std::shared_ptr<OwnedStream> owner = stream.Get();
            Check(self.Get()->RecordUse(owner->get(), owner));
          },
          nb::arg("stream"))
      .def(
          "share_with",
          [](const StorageRef& self, std::uint64_t native) {
            const std::shared_ptr<Storage> storage = self.Get();
            const hal::StreamHandle stream = Take(storage->memory().device()->BorrowStream(native));
            Check(storage->ShareWith(stream));
          },
          nb::arg("stream"))
      .def("close", [](StorageRef& self) { self.owner = nullptr; })
      .def("share", [](const StorageRef& self) { return StorageRef{self.Get()}; });
  m.def("allocate", &Allocate, nb::arg("stream"), nb::arg("size"), nb::arg("tag"));
  m.def("allocate_raw", &AllocateRaw, nb::arg("stream"), nb::arg("size"));
  m.def("free_raw", &FreeRaw, nb::arg("device"), nb::arg("address"));
}

}  // namespace keel::python
