// Held outputs of steps, as Python has them.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "errors.h"
#include "keel/graph/executable.h"
#include "storage.h"

namespace keel::python {

// Shared by the object in Python and by the arrays over it; let go with the last of them.
class Held {
 public:
  Held(graph::HeldOutput output, std::shared_ptr<OwnedStream> stream)
      : stream_(std::move(stream)), output_(std::move(output)) {}
  ~Held() {
    // It may be the last of its executable, which waits for what runs.
    const LeaveInterpreter leave;
    // Not by Close: nobody can be told, and the end of an output says in the log what went wrong.
    const graph::HeldOutput last = std::move(output_);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  const std::shared_ptr<OwnedStream>& stream() const { return stream_; }
  std::uint64_t address() const { return output_.address().value(); }
  Bytes size() const { return output_.size(); }

  // `owner` may be null: then the stream is somebody's who keeps it as long.
  Status RecordUse(hal::StreamHandle stream, std::shared_ptr<OwnedStream> owner) {
    KEEL_TRY(Here());
    const std::lock_guard lock(mutex_);
    KEEL_TRY(output_.RecordUse(stream));
    if (owner != nullptr) readers_.push_back(std::move(owner));
    return OkStatus();
  }

 private:
  // OK, but in a forked child, where the lock may be held for ever.
  Status Here() const {
    return ForkedFromUser() ? stream_->memory()->device()->Health() : OkStatus();
  }

  const std::shared_ptr<OwnedStream> stream_;  // of the step
  std::mutex mutex_;
  std::vector<std::shared_ptr<OwnedStream>> readers_;
  graph::HeldOutput output_;
};

struct HeldRef {
  std::shared_ptr<Held> owner;  // null: closed

  std::shared_ptr<Held> Get() const {
    if (owner == nullptr) throw nb::value_error("this output was let go");
    return owner;
  }
};

void BindHeld(nb::module_& m);

}  // namespace keel::python
