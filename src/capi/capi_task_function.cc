// Callables of the C interface: images, and functions of the caller's; keel/c_task.h has the
// contracts.
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capi/callers_function.h"
#include "capi/handles.h"
#include "capi/last_error.h"
#include "capi/sized_struct.h"
#include "capi/task_objects.h"
#include "keel/c.h"
#include "keel/hal/stream.h"

namespace keel::capi {
namespace {

std::vector<std::byte> BytesAt(const void* data, std::uint64_t size) {
  const auto* const bytes = static_cast<const std::byte*>(data);
  return {bytes, bytes + size};
}

Result<task::Image> Build(const keel_image_content& from) {
  task::ImageBuilder builder;
  if (from.orchestration_size > task::Image::kMaxSize) {
    return InvalidArgument(fmt::format("orchestration code of {} bytes; an image has at most {}",
                                       from.orchestration_size, task::Image::kMaxSize));
  }
  if (from.orchestration != nullptr) {
    builder.SetOrchestration(BytesAt(from.orchestration, from.orchestration_size));
  }
  if (from.part_count != 0) KEEL_TRY(NotNull(from.parts, "content->parts"));
  if (from.kernel_count != 0) KEEL_TRY(NotNull(from.kernels, "content->kernels"));
  for (std::size_t i = 0; i < from.part_count; ++i) {
    const keel_image_part& part = from.parts[i];
    if (part.code == nullptr && part.set == nullptr) {
      return InvalidArgument(fmt::format("part {} has neither code nor the name of a set", i));
    }
    if (part.code == nullptr) {
      builder.AddRegisteredPart(part.set);
    } else if (part.size > task::Image::kMaxSize) {
      return InvalidArgument(fmt::format("part {} has {} bytes; an image has at most {}", i,
                                         part.size, task::Image::kMaxSize));
    } else {
      builder.AddPart(BytesAt(part.code, part.size));
    }
  }
  for (std::size_t i = 0; i < from.kernel_count; ++i) {
    const keel_image_kernel& kernel = from.kernels[i];
    if (kernel.name == nullptr) {
      return InvalidArgument(fmt::format("the name of kernel {} is NULL", i));
    }
    if (kernel.reserved_0 != 0) {
      return InvalidArgument(fmt::format("reserved_0 of kernel {} is not 0", i));
    }
    builder.AddKernel(kernel.part, kernel.name);
  }
  return from.orchestration != nullptr ? builder.Build() : builder.BuildKernels();
}

// --- A call of a function ------------------------------------------------------------------------

// A handle that is one during the call only.
template <class Handle>
class Lent {
 public:
  static Result<Lent> Lend(std::shared_ptr<ObjectOf<Handle>> object) {
    KEEL_ASSIGN(const Handle handle, Add<Handle>(std::move(object)));
    return Lent(handle);
  }
  Lent(Lent&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Lent& operator=(Lent&&) = delete;
  ~Lent() {
    // Unless the function did.
    if (handle_ != nullptr) static_cast<void>(Remove(handle_));
  }
  Handle get() const { return handle_; }

 private:
  explicit Lent(Handle handle) : handle_(handle) {}
  Handle handle_;
};

// What a thread that still has the handle finds nothing in any more, when this goes.
class OpenCall {
 public:
  explicit OpenCall(task::HostCall& call) : object_(std::make_shared<TaskCallObject>()) {
    const MutexLock lock(object_->mutex);
    object_->call = &call;
  }
  ~OpenCall() {
    const MutexLock lock(object_->mutex);
    object_->call = nullptr;
  }
  OpenCall(const OpenCall&) = delete;
  OpenCall& operator=(const OpenCall&) = delete;
  const std::shared_ptr<TaskCallObject>& object() const { return object_; }

 private:
  const std::shared_ptr<TaskCallObject> object_;
};

Status CallFunction(keel_task_function function, void* data, task::HostCall& call) {
  const task::ArgumentsView& arguments = call.arguments();
  std::vector<keel_tensor> tensors(arguments.tensor_count());
  std::vector<keel_tag> tags(arguments.tensor_count());
  std::vector<std::uint64_t> scalars(arguments.scalar_count());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensors[i] = std::bit_cast<keel_tensor>(arguments.tensor(i));
    tags[i] = static_cast<keel_tag>(arguments.tag(i));
  }
  for (std::size_t i = 0; i < scalars.size(); ++i) scalars[i] = arguments.scalar(i);

  const OpenCall open(call);
  KEEL_ASSIGN(const auto lent, Lent<keel_task_call>::Lend(open.object()));
  KEEL_ASSIGN(const auto device, Lent<keel_device>::Lend(call.memory()));
  hal::Stream borrowed(call.memory()->device(), {.stream = call.stream(), .borrowed = true});
  KEEL_ASSIGN(const auto stream, Lent<keel_stream>::Lend(std::make_shared<StreamObject>(
                                     call.memory(), std::move(borrowed))));
  keel_task_context context{};
  context.struct_size = sizeof context;
  context.call = lent.get();
  context.device = device.get();
  context.stream = stream.get();
  context.native_stream = call.stream().value;
  context.tensors = tensors.data();
  context.tags = tags.data();
  context.tensor_count = tensors.size();
  context.scalars = scalars.data();
  context.scalar_count = scalars.size();
  context.kernel_count = call.kernel_count();
  return CallCallers([&] { return function(&context, data); });
}

Result<hal::KernelArg> ArgumentOf(const keel_launch_argument& from, std::size_t index) {
  if (from.reserved_0 != 0) {
    return InvalidArgument(fmt::format("argument {}: reserved_0 is not 0", index));
  }
  if (from.value != nullptr) {
    if (from.value_size == 0 || from.value_size > hal::KernelArg::kMaxValue) {
      return InvalidArgument(fmt::format("argument {}: a value of {} bytes; 1 to {} are possible",
                                         index, from.value_size, hal::KernelArg::kMaxValue));
    }
    return hal::KernelArg::ValueOf(from.value, from.value_size);
  }
  const DeviceAddress address(from.address);
  const Bytes extent(from.extent);
  switch (from.access) {
    case KEEL_ACCESS_READ:
      return hal::KernelArg::In(address, extent);
    case KEEL_ACCESS_WRITE:
      return hal::KernelArg::Out(address, extent);
    case KEEL_ACCESS_READ_WRITE:
      return hal::KernelArg::InOut(address, extent);
    default:
      return InvalidArgument(fmt::format("argument {}: there is no access {}", index, from.access));
  }
}

struct LaunchOf {
  hal::LaunchDims dims;
  std::vector<hal::KernelArg> args;
};

Result<LaunchOf> ReadLaunch(const keel_launch_dims* dims, const keel_launch_argument* arguments,
                            std::size_t argument_count) {
  if (argument_count != 0) KEEL_TRY(NotNull(arguments, "arguments"));
  keel_launch_dims given{};
  if (dims != nullptr) KEEL_TRY(Read(dims, "dims", given));
  LaunchOf launch;
  for (int i = 0; i < 3; ++i) {
    launch.dims.grid[i] = given.grid[i] == 0 ? 1 : given.grid[i];
    launch.dims.block[i] = given.block[i] == 0 ? 1 : given.block[i];
  }
  launch.dims.shared_memory = Bytes(given.shared_memory);
  for (std::size_t i = 0; i < argument_count; ++i) {
    KEEL_ASSIGN(const hal::KernelArg argument, ArgumentOf(arguments[i], i));
    launch.args.push_back(argument);
  }
  return launch;
}

}  // namespace
}  // namespace keel::capi

namespace capi = keel::capi;
using keel::OkStatus;
using keel::Result;
using keel::Status;
using keel::task::Image;

extern "C" {

keel_status keel_image_build(const keel_image_content* content, void* buffer, uint64_t* size) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(size, "size"));
    keel_image_content given{};
    KEEL_TRY(capi::Read(content, "content", given));
    KEEL_ASSIGN(const Image image, capi::Build(given));
    const uint64_t room = std::exchange(*size, image.bytes().size());
    if (buffer == nullptr) return OkStatus();
    if (room < image.bytes().size()) {
      return keel::OutOfRange(fmt::format("the image has {} bytes, and there is room for {}",
                                          image.bytes().size(), room));
    }
    std::memcpy(buffer, image.bytes().data(), image.bytes().size());
    return OkStatus();
  });
}

keel_status keel_orchestrator_register_image(keel_orchestrator orchestrator, const void* image,
                                             uint64_t size, uint64_t* callable) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_ASSIGN(const auto object, capi::Find(orchestrator));
    KEEL_TRY(capi::NotNull(image, "image"));
    KEEL_TRY(capi::NotNull(callable, "callable"));
    KEEL_ASSIGN(const Image parsed, Image::Parse({static_cast<const std::byte*>(image), size}));
    KEEL_ASSIGN(const auto registered, object->orchestrator->Register(parsed));
    *callable = registered.id;
    return OkStatus();
  });
}

keel_status keel_orchestrator_register_function(keel_orchestrator orchestrator,
                                                keel_task_function function, void* data,
                                                keel_destroy_function destroy, const void* kernels,
                                                uint64_t kernels_size, uint64_t* callable) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_ASSIGN(const auto object, capi::Find(orchestrator));
    KEEL_TRY(capi::NotNull(function, "function"));
    KEEL_TRY(capi::NotNull(callable, "callable"));
    std::optional<Image> image;
    if (kernels != nullptr) {
      KEEL_ASSIGN(image, Image::Parse({static_cast<const std::byte*>(kernels), kernels_size}));
    }
    return capi::WithData(data, destroy, [&](const std::shared_ptr<capi::Data>& owned) -> Status {
      KEEL_ASSIGN(const auto registered, object->orchestrator->Register(
                                             [function, owned](keel::task::HostCall& call) {
                                               return capi::CallFunction(function, owned->data,
                                                                         call);
                                             },
                                             image));
      *callable = registered.id;
      return OkStatus();
    });
  });
}

keel_status keel_orchestrator_unregister(keel_orchestrator orchestrator, uint64_t callable) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_ASSIGN(const auto object, capi::Find(orchestrator));
    return object->orchestrator->Unregister({callable});
  });
}

keel_status keel_task_call_launch(keel_task_call call, uint32_t kernel,
                                  const keel_launch_dims* dims,
                                  const keel_launch_argument* arguments, size_t argument_count) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_ASSIGN(const auto object, capi::Find(call));
    const Result<capi::LaunchOf> launch = capi::ReadLaunch(dims, arguments, argument_count);
    const keel::MutexLock lock(object->mutex);
    if (object->call == nullptr) return keel::FailedPrecondition("the call is over");
    if (!launch.ok()) {
      object->call->Refuse(launch.status());
      return launch.status();
    }
    return object->call->Launch(kernel, launch->dims, launch->args);
  });
}

}  // extern "C"
