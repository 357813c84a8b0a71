// Module: owns loaded kernels.
#pragma once

#include <memory>
#include <string_view>

#include "keel/hal/owned_handle.h"

namespace keel::hal {

struct KEEL_EXPORT ModuleTraits {
  using Handle = ModuleHandle;
  static Status GiveBack(Device& device, const Handle& handle);
  static std::string Describe(const Handle& handle);
};

class KEEL_EXPORT Module : public OwnedHandle<ModuleTraits> {
 public:
  using OwnedHandle::OwnedHandle;
  static Result<Module> Load(std::shared_ptr<Device> device, const ModuleSource& source);
  // The kernels of standard_kernels.h.
  static Result<Module> LoadStandard(std::shared_ptr<Device> device);

  ModuleHandle get() const { return handle(); }
  Result<KernelHandle> Find(std::string_view name) const;
};

}  // namespace keel::hal
