// StreamRef: a stream of a device, shared by everything that has work on it.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>

#include "keel/hal/event.h"
#include "keel/hal/stream.h"
#include "keel/memory/process_memory.h"

namespace keel::python {

// A stream and what must happen before it goes: the allocator is told, after everything that was
// allocated for it is gone, because arrays hold it too.
class OwnedStream {
 public:
  // `holds`: what keeps a borrowed stream alive, if anything does.
  OwnedStream(std::shared_ptr<memory::DeviceMemory> memory, hal::Stream stream,
              std::shared_ptr<const void> holds = nullptr)
      : holds_(std::move(holds)), memory_(std::move(memory)), stream_(std::move(stream)) {}
  // A stream of our own is waited for; a borrowed one may be gone already, see Forget.
  ~OwnedStream();
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;

  const std::shared_ptr<memory::DeviceMemory>& memory() const { return memory_; }
  hal::StreamHandle get() const { return stream_.get(); }
  bool borrowed() const { return stream_.borrowed(); }
  const hal::Stream& stream() const { return stream_; }
  // Before the owner of a borrowed stream destroys it: waits for it.
  Status Forget() { return memory_->allocator().ForgetStream(stream_.get()); }

 private:
  std::shared_ptr<const void> holds_;
  std::shared_ptr<memory::DeviceMemory> memory_;
  hal::Stream stream_;
};

struct StreamRef {
  std::shared_ptr<OwnedStream> owner;  // null: closed

  // One more reference, because another thread may close this one meanwhile. ValueError if closed.
  std::shared_ptr<OwnedStream> Get() const;
};

void BindStream(nanobind::module_& m);

}  // namespace keel::python
