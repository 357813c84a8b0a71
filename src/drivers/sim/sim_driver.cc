// The simulated driver: configuration, and opening of devices.

#include "drivers/sim/sim_driver.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <utility>

#include "base/fork.h"
#include "drivers/sim/machine.h"
#include "drivers/sim/sim_device.h"
#include "keel/base/config_string.h"
#include "keel/drivers/sim.h"

namespace keel::sim {
namespace {

Status CheckConfig(const SimConfig& config) {
  if (config.devices < 1 || config.devices > kMaxDevices) {
    return InvalidArgument(
        fmt::format("devices must be 1 to {}, not {}", kMaxDevices, config.devices));
  }
  if (!IsPowerOfTwo(config.granularity) || config.granularity < 4_KiB ||
      config.granularity > 1_GiB) {
    return InvalidArgument(
        fmt::format("granularity must be a power of two from 4 KiB to 1 GiB, not {}",
                    config.granularity.count()));
  }
  if (config.memory < config.granularity || config.memory > 64_TiB) {
    return InvalidArgument(fmt::format("memory must be from one granule ({}) to 64 TiB, not {}",
                                       ToString(config.granularity), ToString(config.memory)));
  }
  if (!config.arena.empty() && (config.arena < 64_MiB || config.arena > 32_TiB)) {
    return InvalidArgument(
        fmt::format("arena must be from 64 MiB to 32 TiB, not {}", ToString(config.arena)));
  }
  return OkStatus();
}

class SimDriver final : public hal::Driver {
 public:
  // `config` may be an error: the driver is then there, and says so whenever it is used.
  explicit SimDriver(Result<SimConfig> config) : config_(std::move(config)) {}
  ~SimDriver() override { opened_.End(); }
  SimDriver(const SimDriver&) = delete;
  SimDriver& operator=(const SimDriver&) = delete;

  std::string_view name() const override { return "sim"; }
  bool simulated() const override { return true; }

  Result<std::vector<hal::DeviceInfo>> Enumerate() override {
    if (!config_.ok()) return config_.status();
    std::vector<hal::DeviceInfo> devices;
    devices.reserve(static_cast<std::size_t>(config_->devices));
    for (int i = 0; i < config_->devices; ++i) devices.push_back(DescribeDevice(*config_, i));
    return devices;
  }

  Result<std::shared_ptr<hal::Device>> Open(int ordinal) override {
    if (!config_.ok()) return config_.status();
    if (ordinal < 0 || ordinal >= config_->devices) {
      return NotFound(
          fmt::format("there is no simulated device {}; there are 0 to {} (KEEL_SIM "
                      "devices:N makes more)",
                      ordinal, config_->devices - 1));
    }
    Opened& opened = opened_.Get();
    const MutexLock lock(opened.mutex);
    std::weak_ptr<hal::Device>& slot = opened.devices[static_cast<std::size_t>(ordinal)];
    if (std::shared_ptr<hal::Device> device = slot.lock()) return device;
    std::shared_ptr<Machine> machine = opened.machine.lock();
    if (machine == nullptr) {
      KEEL_ASSIGN(machine, Machine::Create(*config_));
      opened.machine = machine;
    }
    std::shared_ptr<hal::Device> device =
        hal::ShareDevice(std::make_unique<SimDevice>(std::move(machine), ordinal));
    slot = device;
    return device;
  }

 private:
  // A child begins anew: the parent's machine has no threads there.
  struct Opened {
    Mutex mutex;
    std::weak_ptr<Machine> machine KEEL_GUARDED_BY(mutex);
    std::array<std::weak_ptr<hal::Device>, kMaxDevices> devices KEEL_GUARDED_BY(mutex);
  };

  const Result<SimConfig> config_;
  PerProcess<Opened> opened_;
};

}  // namespace

Result<SimConfig> ParseSimConfig(std::string_view source, std::string_view text) {
  KEEL_ASSIGN(const ConfigString parsed, ConfigString::Parse(source, text));
  SimConfig config;
  std::int64_t devices = config.devices;
  std::string peers;
  ConfigReader reader(parsed);
  reader.Take("devices", &devices, 1, kMaxDevices);
  reader.Take("memory", &config.memory);
  reader.Take("granularity", &config.granularity);
  reader.Take("unified", &config.unified);
  reader.Take("peers", &peers);
  reader.Take("arena", &config.arena);
  reader.Take("mappings", &config.mappings, 1, std::int64_t{1} << 40);
  reader.Take("seed", &config.seed);
  reader.Take("delay", &config.delay_us, 0, 1'000'000);
  if (peers.empty() || peers == "all") {
    config.peers = config.unified;
  } else if (peers == "none") {
    config.peers = false;
  } else {
    reader.Reject("peers", fmt::format("'{}' is neither all nor none", peers));
  }
  if (peers == "all" && !config.unified) {
    reader.Reject("peers", "devices with separate address spaces (unified:0) have no peers");
  }
  KEEL_TRY(reader.Finish());
  config.devices = static_cast<int>(devices);
  KEEL_TRY(CheckConfig(config).Annotate(source));
  return config;
}

Result<std::unique_ptr<hal::Driver>> CreateSimDriver(const SimConfig& config) {
  KEEL_TRY(CheckConfig(config));
  return std::unique_ptr<hal::Driver>(std::make_unique<SimDriver>(config));
}

std::unique_ptr<hal::Driver> CreateBuiltinSimDriver() {
  const char* text = std::getenv("KEEL_SIM");
  return std::make_unique<SimDriver>(ParseSimConfig("KEEL_SIM", text == nullptr ? "" : text));
}

}  // namespace keel::sim
