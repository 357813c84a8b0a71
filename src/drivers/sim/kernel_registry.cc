#include "drivers/sim/kernel_registry.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <set>
#include <utility>

#include "base/loaded_library.h"
#include "hal/check_command.h"
#include "keel/base/mutex.h"

namespace keel::sim {
namespace {

Result<KernelSet> CopyDefinitions(std::span<const KernelDefinition> definitions,
                                  const std::shared_ptr<void>& library, std::string_view origin) {
  KernelSet set;
  std::set<std::string_view> names;
  for (const KernelDefinition& definition : definitions) {
    if (definition.name.empty() || definition.function == nullptr) {
      return InvalidArgument(
          fmt::format("{}: kernel {} has no name or no function", origin, set.size()));
    }
    if (!names.insert(definition.name).second) {
      return InvalidArgument(
          fmt::format("{}: two kernels are named '{}'", origin, definition.name));
    }
    for (std::size_t i = 0; i < definition.parameters.size(); ++i) {
      const std::uint32_t size = definition.parameters[i].size;
      if (size == 0 || size > hal::KernelArg::kMaxArguments) {
        return InvalidArgument(
            fmt::format("{}: parameter {} of kernel '{}' has {} bytes, not 1 to {}", origin, i,
                        definition.name, size, hal::KernelArg::kMaxArguments));
      }
    }
    set.push_back(std::make_shared<const Kernel>(
        Kernel{std::string(definition.name),
               definition.function,
               {definition.parameters.begin(), definition.parameters.end()},
               library,
               nullptr}));
  }
  return set;
}

class Registry {
 public:
  // Never destroyed: devices may be used while static objects are.
  static Registry& Global() {
    static Registry* registry = new Registry();
    return *registry;
  }

  Status Add(std::string_view name, KernelSet set) {
    MutexLock lock(mutex_);
    if (!sets_.emplace(std::string(name), std::move(set)).second) {
      return AlreadyExists(fmt::format("a set of kernels named '{}' is registered already", name));
    }
    return OkStatus();
  }

  Result<KernelSet> Find(const std::string& name) {
    MutexLock lock(mutex_);
    const auto set = sets_.find(name);
    if (set == sets_.end()) {
      return NotFound(fmt::format("no set of kernels named '{}' is registered", name));
    }
    return set->second;
  }

 private:
  Registry() {
    auto set = CopyDefinitions(StandardKernelDefinitions(), nullptr, kStandardSet);
    MutexLock lock(mutex_);
    if (set.ok()) sets_.emplace(kStandardSet, *std::move(set));
  }

  Mutex mutex_;
  std::map<std::string, KernelSet> sets_ KEEL_GUARDED_BY(mutex_);
};

Result<KernelSet> KernelsOf(const std::shared_ptr<void>& library, const std::string& origin) {
  using Entry = const ModuleKernels* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library.get(), kModuleEntry));
  if (entry == nullptr) {
    return InvalidArgument(
        fmt::format("{} is not a module: it exports no function '{}'", origin, kModuleEntry));
  }
  const ModuleKernels* kernels = entry();
  if (kernels == nullptr) {
    return InvalidArgument(fmt::format("{}: '{}' returned no kernels", origin, kModuleEntry));
  }
  return CopyDefinitions({kernels->kernels, kernels->count}, library, origin);
}

Result<KernelSet> OpenFile(const std::string& path) {
  if (access(path.c_str(), R_OK) != 0) {
    return SystemError(fmt::format("opening the module '{}'", path), errno);
  }
  // Without a slash the dynamic loader would search its path instead of opening the file.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  KEEL_ASSIGN(const std::shared_ptr<void> library, LoadLibraryFile(file, path));
  return KernelsOf(library, path);
}

}  // namespace

Status RegisterKernels(std::string_view set, std::span<const KernelDefinition> kernels) {
  KEEL_ASSIGN(KernelSet copy, CopyDefinitions(kernels, nullptr, set));
  return Registry::Global().Add(set, std::move(copy));
}

Result<KernelSet> LoadKernels(const hal::ModuleSource& source) {
  switch (source.kind) {
    case hal::ModuleSource::Kind::kRegistered:
      return Registry::Global().Find(source.name);
    case hal::ModuleSource::Kind::kFile:
      return OpenFile(source.name);
    case hal::ModuleSource::Kind::kImage: {
      KEEL_ASSIGN(const std::shared_ptr<void> library, LoadLibraryImage(source.image, "the image"));
      return KernelsOf(library, "the image");
    }
    case hal::ModuleSource::Kind::kDevice:
      break;
  }
  return InvalidArgument("unknown kind of module source");
}

Result<KernelSet> LoadOrchestration(std::span<const std::byte> code) {
  KEEL_ASSIGN(std::shared_ptr<void> library, LoadLibraryImage(code, "the orchestration code"));
  const auto function =
      reinterpret_cast<hal::OrchestrationFunction>(dlsym(library.get(), hal::kOrchestrationEntry));
  if (function == nullptr) {
    return InvalidArgument(
        fmt::format("the orchestration code exports no function '{}'", hal::kOrchestrationEntry));
  }
  return KernelSet{std::make_shared<const Kernel>(
      Kernel{hal::kOrchestrationEntry,
             nullptr,
             {KernelParameter::In(), KernelParameter::In(), KernelParameter::Out()},
             std::move(library),
             function})};
}

Status CheckArguments(const Kernel& kernel, const hal::KernelLaunch& launch) {
  KEEL_TRY(hal::CheckArguments(launch.args));
  if (launch.args.size() != kernel.parameters.size()) {
    return InvalidArgument(fmt::format("kernel '{}' takes {} arguments, {} were given", kernel.name,
                                       kernel.parameters.size(), launch.args.size()));
  }
  for (std::size_t i = 0; i < launch.args.size(); ++i) {
    const hal::KernelArg& arg = launch.args[i];
    const KernelParameter& parameter = kernel.parameters[i];
    const bool buffer = parameter.access != hal::Access::kNone;
    if (arg.is_buffer() != buffer) {
      return InvalidArgument(fmt::format("argument {} of kernel '{}' must be a {}", i, kernel.name,
                                         buffer ? "buffer" : "value"));
    }
    if (arg.size() != parameter.size) {
      return InvalidArgument(fmt::format("argument {} of kernel '{}' has {} bytes, not {}", i,
                                         kernel.name, arg.size(), parameter.size));
    }
    if (buffer && !hal::Allows(arg.access(), parameter.access)) {
      return InvalidArgument(fmt::format(
          "argument {} of kernel '{}' is {} by the kernel, but was not declared so", i, kernel.name,
          hal::Allows(parameter.access, hal::Access::kWrite) ? "written" : "read"));
    }
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (launch.dims.grid[axis] == 0 || launch.dims.block[axis] == 0) {
      return InvalidArgument(
          fmt::format("kernel '{}': grid and block must be at least 1 on every axis", kernel.name));
    }
  }
  const std::uint64_t threads = std::uint64_t{launch.dims.block[0]} * launch.dims.block[1];
  if (threads > 1024 || threads * launch.dims.block[2] > 1024) {
    return InvalidArgument(
        fmt::format("kernel '{}': a block has at most 1024 threads", kernel.name));
  }
  return OkStatus();
}

}  // namespace keel::sim
