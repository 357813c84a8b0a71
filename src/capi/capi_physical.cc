// Physical memory, and re-recorders, of the C interface; keel/c_graph.h has the contracts.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "capi/graph_objects.h"
#include "capi/handles.h"
#include "capi/last_error.h"
#include "capi/sized_struct.h"
#include "keel/c.h"

namespace keel::capi {
namespace {

static_assert(KEEL_RERECORDING_INSTANTIATE == static_cast<int>(graph::Rerecording::kInstantiate));
static_assert(KEEL_RERECORDING_UPDATE == static_cast<int>(graph::Rerecording::kUpdate));

Status Closed() { return InvalidArgument("another thread closes this physical memory"); }

template <class Body>
keel_status OnRerecorder(const char* function, keel_rerecorder rerecorder, Body body) {
  return Guard(function, [&]() -> Status {
    KEEL_ASSIGN(const auto object, Find(rerecorder));
    return object->calls.Do("re-recorder", [&]() -> Status { return body(*object); });
  });
}

// Streams must outlive the re-recorder.
void Keep(RerecorderObject& object, const std::shared_ptr<StreamObject>& stream) {
  const bool known = std::ranges::any_of(
      object.streams, [&](const auto& each) { return each->stream.get() == stream->stream.get(); });
  if (!known) object.streams.push_back(stream);
}

}  // namespace
}  // namespace keel::capi

namespace capi = keel::capi;
using keel::Bytes;
using keel::DeviceAddress;
using keel::InvalidArgument;
using keel::MutexLock;
using keel::OkStatus;
using keel::Status;

extern "C" {

// --- Physical memory -----------------------------------------------------------------------------

keel_status keel_physical_memory_get_granularity(keel_device device, uint64_t* bytes) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(bytes, "bytes"));
    KEEL_ASSIGN(const auto memory, capi::Find(device));
    const keel::hal::Capabilities& can = memory->device()->capabilities();
    if (!can.virtual_memory) return keel::Unimplemented("this device has no virtual memory");
    *bytes = can.granularity.minimum.count();
    return OkStatus();
  });
}

keel_status keel_physical_memory_create(keel_device device, uint64_t size,
                                        keel_physical_memory* memory) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(memory, "memory"));
    auto made = std::make_shared<capi::PhysicalMemoryObject>();
    KEEL_ASSIGN(made->memory, capi::Find(device));
    const std::shared_ptr<keel::hal::Device>& its = made->memory->device();
    const MutexLock lock(made->mutex);
    KEEL_ASSIGN(made->block,
                keel::memory::PhysicalBlock::Create(its, made->memory->allocator(), Bytes(size),
                                                    keel::telemetry::InternTag("graph:physical")));
    made->range = capi::KnownRange(its, {made->block.address(), made->block.size()});
    KEEL_ASSIGN(*memory, capi::Add<keel_physical_memory>(made));
    return OkStatus();
  });
}

keel_status keel_physical_memory_get(keel_physical_memory memory, uint64_t* address,
                                     uint64_t* size) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(address, "address"));
    KEEL_TRY(capi::NotNull(size, "size"));
    KEEL_ASSIGN(const auto object, capi::Find(memory));
    const MutexLock lock(object->mutex);
    if (!object->block) return capi::Closed();
    *address = object->block.address().value();
    *size = object->block.size().count();
    return OkStatus();
  });
}

keel_status keel_physical_memory_close(keel_physical_memory memory, int64_t timeout_ns) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_ASSIGN(const auto object, capi::Find(memory));
    const MutexLock lock(object->mutex);
    KEEL_TRY(object->block.Close(capi::DeadlineOf(timeout_ns)));
    object->range = {};
    return capi::Remove(memory).status();
  });
}

// --- Re-recorders --------------------------------------------------------------------------------

keel_status keel_rerecorder_create(keel_program program, keel_rerecording how,
                                   keel_rerecorder* rerecorder) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(rerecorder, "rerecorder"));
    KEEL_ASSIGN(const auto object, capi::Find(program));
    if (how != KEEL_RERECORDING_INSTANTIATE && how != KEEL_RERECORDING_UPDATE) {
      return InvalidArgument(fmt::format("there is no way {} of re-recording", how));
    }
    auto made = std::make_shared<capi::RerecorderObject>();
    made->memory = object->memory;
    KEEL_ASSIGN(made->rerecorder,
                keel::graph::Rerecorder::Create(object->program, object->memory,
                                                static_cast<keel::graph::Rerecording>(how)));
    KEEL_ASSIGN(*rerecorder, capi::Add<keel_rerecorder>(std::move(made)));
    return OkStatus();
  });
}

keel_status keel_rerecorder_run(keel_rerecorder rerecorder, keel_stream stream,
                                const uint64_t* addresses, size_t address_count) {
  return capi::OnRerecorder(__func__, rerecorder, [&](capi::RerecorderObject& object) -> Status {
    if (address_count != 0) KEEL_TRY(capi::NotNull(addresses, "addresses"));
    KEEL_ASSIGN(const auto on, capi::Find(object.memory, stream));
    std::vector<DeviceAddress> given;
    given.reserve(address_count);
    for (std::size_t i = 0; i < address_count; ++i) given.emplace_back(addresses[i]);
    capi::Keep(object, on);
    return object.rerecorder->Run(on->stream.get(), given);
  });
}

keel_status keel_rerecorder_get_stats(keel_rerecorder rerecorder, keel_rerecorder_stats* stats) {
  return capi::OnRerecorder(__func__, rerecorder, [&](capi::RerecorderObject& object) -> Status {
    KEEL_TRY(capi::CheckSize(stats, "stats"));
    const keel::graph::RerecorderStats& from = object.rerecorder->stats();
    keel_rerecorder_stats to{};
    to.steps = from.steps;
    to.captured = from.captured;
    to.instantiated = from.instantiated;
    to.updated = from.updated;
    capi::Give(to, stats);
    return OkStatus();
  });
}

keel_status keel_rerecorder_close(keel_rerecorder rerecorder) {
  return capi::Guard(__func__, [&] { return capi::Remove(rerecorder).status(); });
}

}  // extern "C"
