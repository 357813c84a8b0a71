// ModuleSource: where the code of kernels comes from.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "keel/base/bytes.h"

namespace keel::hal {

struct ModuleSource {
  enum class Kind {
    kImage,       // bytes in the device's own format (for the simulated device an ELF library)
    kFile,        // the same, in a file
    kRegistered,  // a set of kernels that was registered with the driver under a name
    kDevice,      // orchestration code in the device's own memory; needs
                  // Capabilities::orchestration (orchestration.h)
  };
  Kind kind = Kind::kImage;
  std::span<const std::byte> image;  // read before LoadModule returns
  std::string name;                  // the path, or the name of the set
  DeviceAddress address{};           // of code on the device, which must stay as it is until
  Bytes size{};                      // UnloadModule

  static ModuleSource Image(std::span<const std::byte> image) {
    return {Kind::kImage, image, {}, {}, {}};
  }
  static ModuleSource File(std::string path) { return {Kind::kFile, {}, std::move(path), {}, {}}; }
  static ModuleSource Registered(std::string name) {
    return {Kind::kRegistered, {}, std::move(name), {}, {}};
  }
  static ModuleSource Device(DeviceAddress address, Bytes size) {
    return {Kind::kDevice, {}, {}, address, size};
  }
};

}  // namespace keel::hal
