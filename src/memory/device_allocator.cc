#include "keel/memory/device_allocator.h"

#include <utility>

#include "memory/allocator_core.h"

namespace keel::memory {

Result<std::unique_ptr<DeviceAllocator>> DeviceAllocator::Create(
    std::shared_ptr<hal::Device> device, DeviceAllocatorOptions options) {
  KEEL_ASSIGN(std::shared_ptr<AllocatorCore> core,
              AllocatorCore::Create(std::move(device), std::move(options)));
  return std::unique_ptr<DeviceAllocator>(new DeviceAllocator(std::move(core)));
}

DeviceAllocator::DeviceAllocator(std::shared_ptr<AllocatorCore> core) : core_(std::move(core)) {}
DeviceAllocator::~DeviceAllocator() = default;

const std::shared_ptr<hal::Device>& DeviceAllocator::device() const { return core_->device; }
const AllocatorConfig& DeviceAllocator::config() const { return core_->config; }

Result<DeviceAddress> DeviceAllocator::Allocate(Bytes size, hal::StreamHandle stream,
                                                const AllocationOptions& options) {
  return core_->Allocate(size, stream, options);
}
Status DeviceAllocator::Free(DeviceAddress address) { return core_->Free(address, nullptr); }
Status DeviceAllocator::Free(DeviceAddress address, Bytes size) {
  return core_->Free(address, &size);
}
Status DeviceAllocator::RecordUse(DeviceAddress address, hal::StreamHandle stream) {
  return core_->RecordUse(address, stream);
}
Result<AllocationInfo> DeviceAllocator::Find(DeviceAddress address) {
  KEEL_TRY(core_->Here());
  return core_->Find(address);
}
std::optional<AllocationInfo> DeviceAllocator::FindBlock(DeviceAddress address) {
  return core_->Here().ok() ? core_->FindBlock(address) : std::nullopt;
}
Status DeviceAllocator::ForgetStream(hal::StreamHandle stream) {
  KEEL_TRY(core_->Here());
  return core_->ForgetStream(stream);
}

Status DeviceAllocator::Trim(Bytes target) {
  KEEL_TRY(core_->Here());
  return core_->Trim(target.count());
}
void DeviceAllocator::SetLimit(Bytes limit) { core_->limit.set_limit(limit.count()); }
Status DeviceAllocator::SetFraction(double fraction) { return core_->SetFraction(fraction); }
Bytes DeviceAllocator::limit() const { return Bytes(core_->limit.limit()); }
Bytes DeviceAllocator::reserved() const { return Bytes(core_->limit.held()); }
Bytes DeviceAllocator::allocated() { return core_->Here().ok() ? core_->Allocated() : Bytes(); }

std::uint64_t DeviceAllocator::AddOutOfMemoryCallback(OutOfMemoryCallback callback) {
  if (!core_->Here().ok()) return 0;
  return core_->AddCallback(std::move(callback));
}
void DeviceAllocator::RemoveOutOfMemoryCallback(std::uint64_t id) {
  if (core_->Here().ok()) core_->RemoveCallback(id);
}

PoolId DeviceAllocator::CreatePool() { return core_->Here().ok() ? core_->CreatePool() : 0; }
Status DeviceAllocator::BeginPool(PoolId pool, std::function<bool(hal::StreamHandle)> filter) {
  KEEL_TRY(core_->Here());
  return core_->BeginPool(pool, std::move(filter));
}
Status DeviceAllocator::EndPool(PoolId pool) {
  KEEL_TRY(core_->Here());
  return core_->EndPool(pool);
}
Status DeviceAllocator::ReleasePool(PoolId pool) {
  KEEL_TRY(core_->Here());
  return core_->ReleasePool(pool);
}
Result<std::vector<PoolBlock>> DeviceAllocator::PoolBlocks(PoolId pool) {
  KEEL_TRY(core_->Here());
  return core_->PoolBlocks(pool);
}
Result<std::vector<DeviceAddress>> DeviceAllocator::RestorePool(PoolId pool,
                                                                std::span<const PoolBlock> blocks) {
  KEEL_TRY(core_->Here());
  return core_->RestorePool(pool, blocks);
}

Status DeviceAllocator::Pin(DeviceAddress address, Bytes size) {
  KEEL_TRY(core_->Here());
  return core_->Pin(address, size, true);
}
Status DeviceAllocator::Unpin(DeviceAddress address, Bytes size) {
  KEEL_TRY(core_->Here());
  return core_->Pin(address, size, false);
}
void DeviceAllocator::SetMoveListener(MoveListener listener) {
  if (core_->Here().ok()) core_->SetMoveListener(std::move(listener));
}

Status DeviceAllocator::AddPeer(std::shared_ptr<hal::Device> peer) {
  KEEL_TRY(core_->Here());
  return core_->AddPeer(std::move(peer));
}
void DeviceAllocator::RemovePeer(hal::DeviceId peer) {
  if (core_->Here().ok()) core_->RemovePeer(peer);
}

Status DeviceAllocator::CheckMemory() {
  KEEL_TRY(core_->Here());
  return core_->CheckMemory();
}
DebugFindings DeviceAllocator::Findings() {
  return core_->Here().ok() ? core_->Findings() : DebugFindings();
}

telemetry::MemoryStats DeviceAllocator::Stats() {
  return core_->Here().ok() ? core_->Stats() : telemetry::MemoryStats();
}
void DeviceAllocator::ResetPeakStats() {
  if (core_->Here().ok()) core_->ResetStats(true);
}
void DeviceAllocator::ResetAccumulatedStats() {
  if (core_->Here().ok()) core_->ResetStats(false);
}
MemorySnapshot DeviceAllocator::Snapshot() {
  return core_->Here().ok() ? core_->Snapshot() : MemorySnapshot();
}
std::string DeviceAllocator::Report() {
  const Status here = core_->Here();
  return here.ok() ? core_->Report() : here.ToString();
}
std::string DeviceAllocator::CheckPools() {
  const Status here = core_->Here();
  return here.ok() ? core_->CheckPools() : here.ToString();
}

std::string DeviceAllocator::Check() {
  const Status here = core_->Here();
  return here.ok() ? core_->Check() : here.ToString();
}

}  // namespace keel::memory
