#include "keel/hal/module.h"

#include <utility>

#include "hal/describe.h"

namespace keel::hal {

Status ModuleTraits::GiveBack(Device& device, const Handle& handle) {
  return device.UnloadModule(handle);
}

std::string ModuleTraits::Describe(const Handle& handle) {
  return DescribeHandle("UnloadModule", handle.value);
}

Result<Module> Module::Load(std::shared_ptr<Device> device, const ModuleSource& source) {
  KEEL_ASSIGN(const ModuleHandle module, device->LoadModule(source));
  return Module(std::move(device), module);
}

Result<Module> Module::LoadStandard(std::shared_ptr<Device> device) {
  KEEL_ASSIGN(const ModuleSource source, device->StandardKernels());
  return Load(std::move(device), source);
}

Result<KernelHandle> Module::Find(std::string_view name) const {
  if (!*this) return InvalidArgument("this Module owns no module");
  return device()->FindKernel(get(), name);
}

}  // namespace keel::hal
