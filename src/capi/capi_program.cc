// Kernels and programs of the C interface; keel/c_graph.h has the contracts.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "capi/callers_function.h"
#include "capi/graph_objects.h"
#include "capi/handles.h"
#include "capi/last_error.h"
#include "capi/sized_struct.h"
#include "keel/c.h"
#include "keel/hal/module_source.h"

namespace keel::capi {
namespace {

using graph::BindingAccess;
using graph::Policy;

static_assert(KEEL_BINDING_IN == static_cast<int>(BindingAccess::kIn));
static_assert(KEEL_BINDING_OUT == static_cast<int>(BindingAccess::kOut));
static_assert(KEEL_BINDING_IN_OUT == static_cast<int>(BindingAccess::kInOut));
static_assert(KEEL_BINDING_SCRATCH == static_cast<int>(BindingAccess::kScratch));
static_assert(KEEL_BINDING_RESIDENT == static_cast<int>(BindingAccess::kResident));
static_assert(KEEL_POLICY_AUTO == static_cast<int>(Policy::kAuto));
static_assert(KEEL_POLICY_RESIDENT == static_cast<int>(Policy::kResident));
static_assert(KEEL_POLICY_IN_PLACE == static_cast<int>(Policy::kInPlace));
static_assert(KEEL_POLICY_COPY == static_cast<int>(Policy::kCopy));
static_assert(KEEL_POLICY_PATCH == static_cast<int>(Policy::kPatch));
static_assert(KEEL_POLICY_REMAP == static_cast<int>(Policy::kRemap));
static_assert(KEEL_POLICY_RETRACE == static_cast<int>(Policy::kRetrace));
static_assert(KEEL_ACCESS_READ == static_cast<int>(hal::Access::kRead));
static_assert(KEEL_ACCESS_WRITE == static_cast<int>(hal::Access::kWrite));
static_assert(KEEL_ACCESS_READ_WRITE == static_cast<int>(hal::Access::kReadWrite));

Status AddModule(const std::shared_ptr<DeviceMemory>& memory, Result<hal::Module> loaded,
                 keel_module* module) {
  KEEL_TRY(loaded.status());
  KEEL_ASSIGN(*module,
              Add<keel_module>(std::make_shared<ModuleObject>(memory, *std::move(loaded))));
  return OkStatus();
}

// --- Functions of the caller's -------------------------------------------------------------------

graph::TraceFunction Traced(const BuilderObject& builder, std::vector<graph::Operand> uses,
                            keel_trace_function function, std::shared_ptr<Data> data) {
  return [memory = builder.memory, device = builder.device, uses = std::move(uses), function,
          data = std::move(data)](const graph::TraceContext& context) -> Status {
    std::vector<std::uint64_t> addresses;
    addresses.reserve(uses.size());
    for (const graph::Operand& use : uses) {
      addresses.push_back((context.address(use.binding) + use.offset).value());
    }
    // Lent for the call: the stream is the launching caller's, or the one that is captured.
    hal::Stream lent(memory->device(), {.stream = context.stream(), .borrowed = true});
    KEEL_ASSIGN(keel_stream stream,
                Add<keel_stream>(std::make_shared<StreamObject>(memory, std::move(lent))));
    keel_trace_context given{};
    given.struct_size = sizeof given;
    given.device = *device;
    given.stream = stream;
    given.native_stream = context.stream().value;
    given.addresses = addresses.data();
    given.address_count = addresses.size();
    given.capturing = context.capturing() ? 1 : 0;
    std::uint64_t graph = 0;
    if (context.takes_graph()) given.graph = &graph;
    Status status = CallCallers([&] { return function(&given, data->data); });
    static_cast<void>(Remove(stream));  // unless the function did
    context.Give(hal::GraphHandle{graph});
    return status;
  };
}

// --- Builders ------------------------------------------------------------------------------------

// A call that adds to a builder. Not after Build: its handle is gone then.
template <class Body>
keel_status OnBuilder(const char* function, keel_program_builder builder, Body body) {
  return Guard(function, [&]() -> Status {
    KEEL_ASSIGN(const auto object, Find(builder));
    return object->calls.Do("program builder", [&]() -> Status {
      if (!object->builder) return InvalidArgument("the program builder was built");
      return body(*object);
    });
  });
}

graph::Operand OperandOf(const keel_operand& from) {
  // What is no access is for Build to say.
  const bool known = from.access >= KEEL_ACCESS_READ && from.access <= KEEL_ACCESS_READ_WRITE;
  return {.binding = {from.binding},
          .access = known ? static_cast<hal::Access>(from.access) : hal::Access::kNone,
          .offset = Bytes(from.offset),
          .extent = Bytes(from.extent)};
}

Result<graph::Argument> ArgumentOf(const keel_kernel_argument& from, std::size_t index) {
  if (from.value == nullptr) return graph::Argument::Of(OperandOf(from.operand));
  if (from.value_size == 0 || from.value_size > hal::KernelArg::kMaxValue) {
    return InvalidArgument(fmt::format("arguments[{}].value_size is {}: a value has 1 to {} bytes",
                                       index, from.value_size, hal::KernelArg::kMaxValue));
  }
  return graph::Argument::ValueOf(from.value, from.value_size);
}

// How a program takes a function.
using AddMember = void (graph::ProgramBuilder::*)(std::string, std::vector<graph::Operand>,
                                                  graph::TraceFunction);

Status AddFunction(BuilderObject& object, AddMember add, const char* name, const keel_operand* uses,
                   std::size_t use_count, keel_trace_function function, void* data,
                   keel_destroy_function destroy) {
  KEEL_TRY(NotNull(name, "name"));
  KEEL_TRY(NotNull(function, "function"));
  if (use_count != 0) KEEL_TRY(NotNull(uses, "uses"));
  std::vector<graph::Operand> operands;
  operands.reserve(use_count);
  for (std::size_t i = 0; i < use_count; ++i) operands.push_back(OperandOf(uses[i]));
  return WithData(data, destroy, [&](const std::shared_ptr<Data>& owned) {
    auto call = Traced(object, operands, function, owned);
    ((*object.builder).*add)(name, std::move(operands), std::move(call));
    return OkStatus();
  });
}

// The device's handle that the functions of a program are given: of its own, so that nobody closes
// it before the program is gone.
Result<std::shared_ptr<keel_device>> LendDevice(const std::shared_ptr<DeviceMemory>& memory) {
  KEEL_ASSIGN(keel_device handle, Add<keel_device>(memory));
  return std::shared_ptr<keel_device>(new keel_device(handle), [](keel_device* lent) {
    static_cast<void>(Remove(*lent));
    delete lent;
  });
}

}  // namespace
}  // namespace keel::capi

namespace capi = keel::capi;
using keel::Bytes;
using keel::InvalidArgument;
using keel::OkStatus;
using keel::Status;
using keel::graph::ProgramBuilder;

extern "C" {

keel_status keel_module_load_standard(keel_device device, keel_module* module) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(module, "module"));
    KEEL_ASSIGN(const auto memory, capi::Find(device));
    return capi::AddModule(memory, keel::hal::Module::LoadStandard(memory->device()), module);
  });
}

keel_status keel_module_load_image(keel_device device, const void* image, uint64_t size,
                                   keel_module* module) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(image, "image"));
    KEEL_TRY(capi::NotNull(module, "module"));
    KEEL_ASSIGN(const auto memory, capi::Find(device));
    const auto source = keel::hal::ModuleSource::Image(
        {static_cast<const std::byte*>(image), static_cast<std::size_t>(size)});
    return capi::AddModule(memory, keel::hal::Module::Load(memory->device(), source), module);
  });
}

keel_status keel_module_load_file(keel_device device, const char* path, keel_module* module) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(path, "path"));
    KEEL_TRY(capi::NotNull(module, "module"));
    KEEL_ASSIGN(const auto memory, capi::Find(device));
    const auto source = keel::hal::ModuleSource::File(path);
    return capi::AddModule(memory, keel::hal::Module::Load(memory->device(), source), module);
  });
}

keel_status keel_module_close(keel_module module) {
  return capi::Guard(__func__, [&] { return capi::Remove(module).status(); });
}

keel_status keel_kernel_find(keel_module module, const char* name, keel_kernel* kernel) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(name, "name"));
    KEEL_TRY(capi::NotNull(kernel, "kernel"));
    KEEL_ASSIGN(auto object, capi::Find(module));
    KEEL_ASSIGN(const auto found, object->module.Find(name));
    const auto memory = object->memory;
    KEEL_ASSIGN(*kernel, capi::Add<keel_kernel>(std::make_shared<capi::KernelObject>(
                             memory, std::move(object), found)));
    return OkStatus();
  });
}

keel_status keel_kernel_borrow(keel_device device, uint64_t native, keel_kernel* kernel) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(kernel, "kernel"));
    if (native == 0) return InvalidArgument("native is 0, which is no kernel");
    KEEL_ASSIGN(auto memory, capi::Find(device));
    KEEL_ASSIGN(*kernel, capi::Add<keel_kernel>(std::make_shared<capi::KernelObject>(
                             std::move(memory), nullptr, keel::hal::KernelHandle{native})));
    return OkStatus();
  });
}

keel_status keel_kernel_close(keel_kernel kernel) {
  return capi::Guard(__func__, [&] { return capi::Remove(kernel).status(); });
}

keel_status keel_program_builder_create(keel_device device, const char* name,
                                        keel_program_builder* builder) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(name, "name"));
    KEEL_TRY(capi::NotNull(builder, "builder"));
    auto object = std::make_shared<capi::BuilderObject>();
    KEEL_ASSIGN(object->memory, capi::Find(device));
    KEEL_ASSIGN(object->device, capi::LendDevice(object->memory));
    object->builder.emplace(name);
    KEEL_ASSIGN(*builder, capi::Add<keel_program_builder>(std::move(object)));
    return OkStatus();
  });
}

keel_status keel_program_builder_discard(keel_program_builder builder) {
  return capi::Guard(__func__, [&] { return capi::Remove(builder).status(); });
}

keel_status keel_program_builder_bind(keel_program_builder builder, const char* name, uint64_t size,
                                      keel_binding_access access, keel_policy policy,
                                      uint32_t* binding) {
  return capi::OnBuilder(__func__, builder, [&](capi::BuilderObject& object) -> Status {
    KEEL_TRY(capi::NotNull(name, "name"));
    KEEL_TRY(capi::NotNull(binding, "binding"));
    if (access < KEEL_BINDING_IN || access > KEEL_BINDING_RESIDENT) {
      return InvalidArgument(fmt::format("there is no access {} of bindings", access));
    }
    if (policy < KEEL_POLICY_AUTO || policy > KEEL_POLICY_RETRACE) {
      return InvalidArgument(fmt::format("there is no policy {} of bindings", policy));
    }
    *binding = object.builder
                   ->Bind({.name = name,
                           .size = Bytes(size),
                           .access = static_cast<keel::graph::BindingAccess>(access),
                           .policy = static_cast<keel::graph::Policy>(policy)})
                   .index;
    return OkStatus();
  });
}

keel_status keel_program_builder_kernel(keel_program_builder builder, keel_kernel kernel,
                                        const keel_launch_dims* dims,
                                        const keel_kernel_argument* arguments,
                                        size_t argument_count) {
  return capi::OnBuilder(__func__, builder, [&](capi::BuilderObject& object) -> Status {
    KEEL_ASSIGN(const auto found, capi::Find(kernel));
    if (found->memory->device() != object.memory->device()) {
      return InvalidArgument(fmt::format("the kernel is of device {}, the program of device {}",
                                         found->memory->name().ToString(),
                                         object.memory->name().ToString()));
    }
    keel_launch_dims given{};
    if (dims != nullptr) KEEL_TRY(capi::Read(dims, "dims", given));
    if (argument_count != 0) KEEL_TRY(capi::NotNull(arguments, "arguments"));
    keel::hal::LaunchDims wanted{.shared_memory = Bytes(given.shared_memory)};
    for (std::size_t i = 0; i < 3; ++i) {
      wanted.grid[i] = std::max(given.grid[i], 1U);
      wanted.block[i] = std::max(given.block[i], 1U);
    }
    std::vector<keel::graph::Argument> made;
    made.reserve(argument_count);
    for (std::size_t i = 0; i < argument_count; ++i) {
      KEEL_ASSIGN(auto argument, capi::ArgumentOf(arguments[i], i));
      made.push_back(argument);
    }
    object.builder->Keep(found);
    object.builder->Kernel(found->kernel, wanted, std::move(made));
    return OkStatus();
  });
}

keel_status keel_program_builder_copy(keel_program_builder builder, const keel_operand* destination,
                                      const keel_operand* source) {
  return capi::OnBuilder(__func__, builder, [&](capi::BuilderObject& object) -> Status {
    KEEL_TRY(capi::NotNull(destination, "destination"));
    KEEL_TRY(capi::NotNull(source, "source"));
    object.builder->Copy(capi::OperandOf(*destination), capi::OperandOf(*source));
    return OkStatus();
  });
}

keel_status keel_program_builder_fill(keel_program_builder builder, const keel_operand* destination,
                                      uint32_t value, uint32_t width) {
  return capi::OnBuilder(__func__, builder, [&](capi::BuilderObject& object) -> Status {
    KEEL_TRY(capi::NotNull(destination, "destination"));
    object.builder->Fill(capi::OperandOf(*destination), value, width);
    return OkStatus();
  });
}

keel_status keel_program_builder_call(keel_program_builder builder, keel_host_function function,
                                      void* data, keel_destroy_function destroy) {
  return capi::OnBuilder(__func__, builder, [&](capi::BuilderObject& object) -> Status {
    KEEL_TRY(capi::NotNull(function, "function"));
    return capi::WithData(data, destroy, [&](const std::shared_ptr<capi::Data>& owned) {
      object.builder->Keep(owned);
      object.builder->Call({.function = function, .data = data});
      return OkStatus();
    });
  });
}

keel_status keel_program_builder_traced(keel_program_builder builder, const char* name,
                                        const keel_operand* uses, size_t use_count,
                                        keel_trace_function function, void* data,
                                        keel_destroy_function destroy) {
  return capi::OnBuilder(__func__, builder, [&](capi::BuilderObject& object) {
    return capi::AddFunction(object, &ProgramBuilder::Traced, name, uses, use_count, function, data,
                             destroy);
  });
}

keel_status keel_program_builder_recorded(keel_program_builder builder, const char* name,
                                          const keel_operand* uses, size_t use_count,
                                          keel_trace_function function, void* data,
                                          keel_destroy_function destroy) {
  return capi::OnBuilder(__func__, builder, [&](capi::BuilderObject& object) {
    return capi::AddFunction(object, &ProgramBuilder::Recorded, name, uses, use_count, function,
                             data, destroy);
  });
}

keel_status keel_program_builder_eager(keel_program_builder builder, const char* name,
                                       const keel_operand* uses, size_t use_count,
                                       keel_trace_function function, void* data,
                                       keel_destroy_function destroy) {
  return capi::OnBuilder(__func__, builder, [&](capi::BuilderObject& object) {
    return capi::AddFunction(object, &ProgramBuilder::Eager, name, uses, use_count, function, data,
                             destroy);
  });
}

keel_status keel_program_builder_build(keel_program_builder builder, keel_program* program) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(program, "program"));
    KEEL_ASSIGN(const auto object, capi::Remove(builder));
    return object->calls.Do("program builder", [&]() -> Status {
      auto made = std::make_shared<capi::ProgramObject>();
      made->memory = object->memory;
      KEEL_ASSIGN(made->program, std::move(*std::exchange(object->builder, {})).Build());
      KEEL_ASSIGN(*program, capi::Add<keel_program>(std::move(made)));
      return OkStatus();
    });
  });
}

keel_status keel_program_find(keel_program program, const char* name, uint32_t* binding) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(name, "name"));
    KEEL_TRY(capi::NotNull(binding, "binding"));
    KEEL_ASSIGN(const auto object, capi::Find(program));
    KEEL_ASSIGN(const auto found, object->program->Find(name));
    *binding = found.index;
    return OkStatus();
  });
}

keel_status keel_program_get_scratch_bytes(keel_program program, uint64_t* bytes) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(bytes, "bytes"));
    KEEL_ASSIGN(const auto object, capi::Find(program));
    *bytes = object->program->scratch_bytes().count();
    return OkStatus();
  });
}

keel_status keel_program_close(keel_program program) {
  return capi::Guard(__func__, [&] { return capi::Remove(program).status(); });
}

}  // extern "C"
