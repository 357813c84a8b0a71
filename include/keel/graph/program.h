// Program: a list of commands over bindings, checked, and the same for every device and step.
//
//   ProgramBuilder builder("mlp");
//   const BindingId x = builder.Bind({.name = "x", .size = 4_KiB});
//   const BindingId y = builder.Bind({.name = "y", .size = 4_KiB, .access = BindingAccess::kOut});
//   builder.Kernel(double_it, dims, {Argument::In(x), Argument::Out(y), Argument::Value(n)});
//   KEEL_ASSIGN(const std::shared_ptr<const Program> program, std::move(builder).Build());
//
// Commands run in the order in which they were added, as on a stream: each after the one before.
// Explicit commands (kernel, copy, fill, host call) say what they work on, so that their addresses
// can be rewritten. A traced command is a function that puts work on a stream, a library's for
// example; the stream is being captured when it is called, and the addresses that it is given are
// those that the recording keeps. Where a library makes graphs by itself, a recorded command takes
// such a graph instead. An eager one is a function whose work cannot be captured: it is called in
// every step, between two graphs.
//
// A builder is one thread's. A program is immutable; any thread may use it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/graph/binding.h"
#include "keel/hal/command.h"

namespace keel::graph {

// A part of a binding, and what a command does with it. An extent of zero is the rest of the
// binding.
struct Operand {
  BindingId binding;
  hal::Access access = hal::Access::kRead;
  Bytes offset{};
  Bytes extent{};
};

// An argument of a kernel: a part of a binding, or a value.
class Argument {
 public:
  static Argument In(BindingId binding, Bytes offset = Bytes(0), Bytes extent = Bytes(0)) {
    return Argument(Operand{binding, hal::Access::kRead, offset, extent});
  }
  static Argument Out(BindingId binding, Bytes offset = Bytes(0), Bytes extent = Bytes(0)) {
    return Argument(Operand{binding, hal::Access::kWrite, offset, extent});
  }
  static Argument InOut(BindingId binding, Bytes offset = Bytes(0), Bytes extent = Bytes(0)) {
    return Argument(Operand{binding, hal::Access::kReadWrite, offset, extent});
  }
  template <class T>
  static Argument Value(const T& value) {
    return Argument(hal::KernelArg::Value(value));
  }
  // See hal::KernelArg::ValueOf.
  static Argument ValueOf(const void* bytes, std::size_t size) {
    return Argument(hal::KernelArg::ValueOf(bytes, size));
  }
  static Argument Of(const Operand& operand) { return Argument(operand); }
  const std::variant<Operand, hal::KernelArg>& get() const { return what_; }
  std::variant<Operand, hal::KernelArg>& get() { return what_; }

 private:
  explicit Argument(std::variant<Operand, hal::KernelArg> what) : what_(what) {}
  std::variant<Operand, hal::KernelArg> what_;
};

// What a traced or eager command is called with. Only valid during the call.
class KEEL_EXPORT TraceContext {
 public:
  TraceContext(hal::Device& device, hal::StreamHandle stream,
               std::span<const DeviceAddress> addresses, bool capturing,
               hal::GraphHandle* graph = nullptr)
      : device_(device),
        stream_(stream),
        addresses_(addresses),
        capturing_(capturing),
        graph_(graph) {}

  hal::Device& device() const { return device_; }
  // Where the work goes.
  hal::StreamHandle stream() const { return stream_; }
  // Where a binding that the command declared is.
  DeviceAddress address(BindingId binding) const { return addresses_[binding.index]; }
  // False in an eager step, a warm-up for example.
  bool capturing() const { return capturing_; }
  // Of a recorded command, while it is captured: see ProgramBuilder::Recorded.
  bool takes_graph() const { return graph_ != nullptr; }
  void Give(hal::GraphHandle graph) const {
    if (graph_ != nullptr) *graph_ = graph;
  }

 private:
  hal::Device& device_;
  hal::StreamHandle stream_;
  std::span<const DeviceAddress> addresses_;
  bool capturing_;
  hal::GraphHandle* graph_;
};
// May be called any number of times, for different addresses, by one thread at a time. It may
// launch other executables, not the one that calls it, nor one with the same scratch arena:
// kFailedPrecondition.
using TraceFunction = std::function<Status(const TraceContext&)>;

namespace command {
struct Kernel {
  hal::KernelHandle kernel;
  hal::LaunchDims dims;
  std::vector<Argument> arguments;
};
struct Copy {
  Operand destination;
  Operand source;  // of the same extent
};
struct Fill {
  Operand destination;
  std::uint32_t value = 0;
  std::uint32_t width = 1;
};
struct Call {
  hal::HostCall call;
};
struct Traced {
  std::string name;
  TraceFunction function;
  std::vector<Operand> uses;
  bool recorded = false;  // gives a graph instead of putting work on the stream
};
struct Eager {
  std::string name;
  TraceFunction function;
  std::vector<Operand> uses;
};
}  // namespace command
using ProgramCommand = std::variant<command::Kernel, command::Copy, command::Fill, command::Call,
                                    command::Traced, command::Eager>;

class KEEL_EXPORT Program {
 public:
  const std::string& name() const { return name_; }
  std::span<const BindingSpec> bindings() const { return bindings_; }
  std::span<const ProgramCommand> commands() const { return commands_; }
  // kNotFound names those that there are.
  Result<BindingId> Find(std::string_view name) const;
  // Whether a traced or an eager command uses it: its address is then not Keel's to rewrite.
  bool used_opaquely(BindingId binding) const { return opaque_[binding.index]; }
  bool has_traced() const { return has_traced_; }
  // Of a shared arena (scratch_arena.h), that its scratch bindings take.
  Bytes scratch_bytes() const;
  static constexpr Bytes kScratchAlignment{512};

 private:
  friend class ProgramBuilder;
  std::string name_;
  std::vector<BindingSpec> bindings_;
  std::vector<ProgramCommand> commands_;
  std::vector<bool> opaque_;
  std::vector<std::shared_ptr<const void>> kept_;
  bool has_traced_ = false;
};

// What is wrong with a command is said by Build, with the command's number and the binding's name.
class KEEL_EXPORT ProgramBuilder {
 public:
  explicit ProgramBuilder(std::string name);

  BindingId Bind(BindingSpec spec);
  void Kernel(hal::KernelHandle kernel, const hal::LaunchDims& dims,
              std::vector<Argument> arguments);
  void Copy(Operand destination, Operand source);
  // `value` is `width` bytes wide (1, 2 or 4) and fills the whole operand.
  void Fill(Operand destination, std::uint32_t value, std::uint32_t width);
  // See hal::HostCall.
  void Call(const hal::HostCall& call);
  void Traced(std::string name, std::vector<Operand> uses, TraceFunction function);
  // For a library that makes graphs by itself. While it is captured the function puts nothing on
  // the stream and gives a graph for the addresses (TraceContext::Give), which stays the function's
  // and is copied at once; what it works with must live as long as the executable's slots. In an
  // eager step the function puts the work on the stream.
  void Recorded(std::string name, std::vector<Operand> uses, TraceFunction function);
  void Eager(std::string name, std::vector<Operand> uses, TraceFunction function);
  // What commands need and do not own, a kernel's module or a host call's data, lives as long as
  // the program, which lives until nothing that was recorded from it can run any more.
  void Keep(std::shared_ptr<const void> what);

  // kInvalidArgument: a name that is empty or taken, a size of zero, a command that names a binding
  // that is not there, goes beyond its end, or writes what is declared `in`; an explicit
  // command that reads a part of what is declared `out` before a command wrote any of that; a fill
  // with a value that is wider than its words; a policy that the access or the commands rule out.
  // An empty program is fine.
  Result<std::shared_ptr<const Program>> Build() &&;

 private:
  std::shared_ptr<Program> program_;
};

}  // namespace keel::graph
