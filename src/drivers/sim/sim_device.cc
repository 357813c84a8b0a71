#include "drivers/sim/sim_device.h"

#include <fmt/format.h>

#include <utility>

#include "hal/host_call_scope.h"
#include "keel/base/log.h"
#include "keel/hal/driver.h"

namespace keel::sim {

hal::DeviceInfo DescribeDevice(const SimConfig& config, int ordinal) {
  hal::DeviceInfo info;
  info.driver = "sim";
  info.ordinal = ordinal;
  info.name = fmt::format("Keel simulated accelerator {}", ordinal);
  info.identity = fmt::format("sim-{}", ordinal);
  info.architecture = "keel-sim-1";
  info.memory = config.memory;
  info.simulated = true;
  return info;
}

SimDevice::SimDevice(std::shared_ptr<Machine> machine, int ordinal)
    : machine_(std::move(machine)),
      ordinal_(ordinal),
      id_(hal::NextDeviceId()),
      info_(DescribeDevice(machine_->config(), ordinal)) {
  const SimConfig& config = machine_->config();
  capabilities_.virtual_memory = true;
  capabilities_.granularity = {config.granularity, config.granularity};
  capabilities_.exportable_memory = true;
  capabilities_.rdma_memory = false;  // no other hardware is simulated
  capabilities_.host_registration = true;
  capabilities_.unified_addresses = config.unified;
  capabilities_.kernels = true;
  capabilities_.orchestration = true;
  capabilities_.host_calls = true;
  capabilities_.value_writes = true;
  capabilities_.value_waits = true;
  capabilities_.event_timing = true;
  capabilities_.graphs = true;
  capabilities_.graph_update = true;
  capabilities_.node_update = true;
  machine_->Attach(*this);
}

SimDevice::~SimDevice() {
  // Not under the lock: a stream may be reporting a fault.
  for (const std::shared_ptr<SimStream>& stream : Streams()) stream->Stop();
  machine_->streams.RemoveIf([&](const SimStream& stream) { return &stream.device() == this; });
  machine_->Detach(*this);
}

Status SimDevice::Health() const {
  if (!home_.here()) {
    return FailedPrecondition(
        "this device was opened before the process forked; open it again in the child");
  }
  if (!lost()) return OkStatus();
  MutexLock lock(mutex_);
  return fault_;
}

Status SimDevice::Enter(hal::Primitive primitive, Safety safety) const {
  if (lost() || !home_.here()) return Health();
  if (hal::InHostCall()) return hal::RefusedInHostCall(primitive);
  if (safety == Safety::kUnsafeInCapture) {
    return machine_->captures.CheckUnsafe(hal::PrimitiveName(primitive));
  }
  return OkStatus();
}

void SimDevice::LoseBy(const Status& fault) {
  std::vector<std::shared_ptr<SimStream>> streams;
  {
    MutexLock lock(mutex_);
    if (lost()) return;
    fault_ = DeviceLost(fmt::format("device {} is lost: {}", ordinal_, fault.message()));
    lost_.store(true, std::memory_order_release);
    streams = streams_;
  }
  for (const std::shared_ptr<SimStream>& stream : streams) stream->Wake();
}

Result<hal::ModuleSource> SimDevice::StandardKernels() const {
  return hal::ModuleSource::Registered(std::string(kStandardSet));
}

Result<int> SimDevice::FindPeer(hal::DeviceId peer) const {
  if (peer == id_) return ordinal_;
  SimDevice* device = machine_->FindDevice(peer);
  if (device == nullptr) {
    return InvalidArgument(fmt::format("device id {} is not an open device of this driver",
                                       static_cast<std::uint32_t>(peer)));
  }
  return device->ordinal();
}

Status SimDevice::HoldStream(hal::StreamHandle stream) {
  KEEL_ASSIGN(const auto found, FindStream(stream));
  found->Hold();
  return OkStatus();
}

Status SimDevice::ReleaseStream(hal::StreamHandle stream) {
  KEEL_ASSIGN(const auto found, FindStream(stream));
  if (!found->Release()) return FailedPrecondition("the stream is not held");
  return OkStatus();
}

Status SimDevice::SetPeer(hal::DeviceId peer, bool allowed) {
  KEEL_ASSIGN(const int other, FindPeer(peer));
  if (!machine_->config().unified) {
    return FailedPrecondition("devices with separate address spaces cannot access each other");
  }
  if (other == ordinal_) return InvalidArgument("a device always has access to itself");
  machine_->SetPeer(ordinal_, other, allowed);
  return OkStatus();
}

void SimDevice::Lose(std::string_view reason) { LoseBy(DeviceLost(std::string(reason))); }

Controls* FindControls(hal::Device& device) {
  return dynamic_cast<SimDevice*>(&device.Innermost());
}

}  // namespace keel::sim
