// Graph, GraphExec and Capture: owners of a recorded graph, of an instantiated one, and of a
// recording that is under way.
#pragma once

#include <memory>

#include "keel/hal/owned_handle.h"

namespace keel::hal {

struct KEEL_EXPORT GraphTraits {
  using Handle = GraphHandle;
  static Status GiveBack(Device& device, const Handle& handle);
  static std::string Describe(const Handle& handle);
};

class KEEL_EXPORT Graph : public OwnedHandle<GraphTraits> {
 public:
  using OwnedHandle::OwnedHandle;
  static Result<Graph> Create(std::shared_ptr<Device> device);
  GraphHandle get() const { return handle(); }
};

struct KEEL_EXPORT ExecTraits {
  using Handle = ExecHandle;
  static Status GiveBack(Device& device, const Handle& handle);
  static std::string Describe(const Handle& handle);
};

class KEEL_EXPORT GraphExec : public OwnedHandle<ExecTraits> {
 public:
  using OwnedHandle::OwnedHandle;
  static Result<GraphExec> Create(const Graph& graph);
  ExecHandle get() const { return handle(); }
  Status Launch(StreamHandle stream) const;
};

struct KEEL_EXPORT CaptureTraits {
  using Handle = StreamHandle;
  // Ends the capture and throws its graph away. A capture that was invalidated is over as well.
  static Status GiveBack(Device& device, const Handle& handle);
  static std::string Describe(const Handle& handle);
};

// A recording that ends on every path: a scope that is left early, by an error, leaves no stream
// capturing.
class KEEL_EXPORT Capture : public OwnedHandle<CaptureTraits> {
 public:
  using OwnedHandle::OwnedHandle;
  static Result<Capture> Begin(std::shared_ptr<Device> device, StreamHandle stream,
                               CaptureMode mode = CaptureMode::kThreadLocal);
  // Ends the capture and returns its graph. Afterwards this owns nothing, also when it failed.
  Result<Graph> End();
};

}  // namespace keel::hal
