#include "keel/graph/program.h"

#include <fmt/format.h>

#include <algorithm>

namespace keel::graph {
namespace {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};

bool Reads(hal::Access access) {
  return access == hal::Access::kRead || access == hal::Access::kReadWrite;
}

bool Writes(hal::Access access) {
  return access == hal::Access::kWrite || access == hal::Access::kReadWrite;
}

// What Build looks at, command by command. The first mistake is the one that is reported.
class Checker {
 public:
  Checker(std::vector<BindingSpec>& bindings, std::vector<bool>& opaque)
      : bindings_(bindings), opaque_(opaque), written_(bindings.size()) {}

  Status Check(std::size_t index, ProgramCommand& command) {
    where_ = fmt::format("command {}", index);
    operands_.clear();
    KEEL_TRY(CheckAlone(command));
    return CheckInOrder(std::holds_alternative<command::Traced>(command) ||
                        std::holds_alternative<command::Eager>(command));
  }

 private:
  Status CheckAlone(ProgramCommand& command) {
    return std::visit(
        Overloaded{
            [&](command::Kernel& kernel) {
              if (!kernel.kernel) return InvalidArgument(where_ + ": no kernel");
              for (Argument& argument : kernel.arguments) {
                if (auto* operand = std::get_if<Operand>(&argument.get())) {
                  KEEL_TRY(Complete(*operand));
                }
              }
              return OkStatus();
            },
            [&](command::Copy& copy) {
              copy.destination.access = hal::Access::kWrite;
              copy.source.access = hal::Access::kRead;
              KEEL_TRY(Complete(copy.destination));
              KEEL_TRY(Complete(copy.source));
              if (copy.destination.extent == copy.source.extent) return OkStatus();
              return InvalidArgument(fmt::format("{}: copies {} to {}", where_,
                                                 keel::ToString(copy.source.extent),
                                                 keel::ToString(copy.destination.extent)));
            },
            [&](command::Fill& fill) {
              fill.destination.access = hal::Access::kWrite;
              KEEL_TRY(Complete(fill.destination));
              if (fill.width != 1 && fill.width != 2 && fill.width != 4) {
                return InvalidArgument(
                    fmt::format("{}: a width of {} is not 1, 2 or 4", where_, fill.width));
              }
              if (fill.width < 4 && fill.value >> (8 * fill.width) != 0) {
                return InvalidArgument(fmt::format("{}: the value {:#x} is wider than {} bytes",
                                                   where_, fill.value, fill.width));
              }
              if (fill.destination.extent.count() % fill.width == 0 &&
                  fill.destination.offset.count() % fill.width == 0) {
                return OkStatus();
              }
              return InvalidArgument(fmt::format("{}: fills {} at offset {} with words of {} bytes",
                                                 where_, keel::ToString(fill.destination.extent),
                                                 fill.destination.offset.count(), fill.width));
            },
            [&](command::Call& call) {
              return call.call.function != nullptr ? OkStatus()
                                                   : InvalidArgument(where_ + ": no function");
            },
            [&](command::Traced& traced) {
              return Opaque(traced.name, traced.function, traced.uses);
            },
            [&](command::Eager& eager) { return Opaque(eager.name, eager.function, eager.uses); },
        },
        command);
  }

  // With what came before it. Of an opaque command only its writes count: what it reads, it may
  // well have written first.
  Status CheckInOrder(bool opaque) {
    for (const Operand& operand : operands_) {
      const BindingSpec& spec = bindings_[operand.binding.index];
      if (opaque || spec.access != BindingAccess::kOut || !Reads(operand.access)) continue;
      // A part of it will do: the rest may be what does not matter.
      const std::vector<Operand>& written = written_[operand.binding.index];
      if (std::any_of(written.begin(), written.end(), [&](const Operand& before) {
            return before.offset < operand.offset + operand.extent &&
                   operand.offset < before.offset + before.extent;
          })) {
        continue;
      }
      return InvalidArgument(fmt::format(
          "{}: reads '{}', which is declared 'out', before anything wrote it", where_, spec.name));
    }
    for (const Operand& operand : operands_) {
      const BindingSpec& spec = bindings_[operand.binding.index];
      if (spec.access != BindingAccess::kOut || !Writes(operand.access)) continue;
      written_[operand.binding.index].push_back(operand);
      // Whatever part it names: it writes what it needs.
      if (opaque) written_[operand.binding.index].back() = {.extent = spec.size};
    }
    return OkStatus();
  }

  Status Opaque(const std::string& name, const TraceFunction& function,
                std::vector<Operand>& uses) {
    where_ += " '" + name + "'";
    if (!function) return InvalidArgument(where_ + ": no function");
    for (Operand& use : uses) {
      KEEL_TRY(Complete(use));
      opaque_[use.binding.index] = true;
    }
    return OkStatus();
  }

  Status Complete(Operand& operand) {
    if (operand.binding.index >= bindings_.size()) {
      return InvalidArgument(
          fmt::format("{}: there is no binding {}", where_, operand.binding.index));
    }
    const BindingSpec& spec = bindings_[operand.binding.index];
    if (operand.access == hal::Access::kNone) {
      return InvalidArgument(fmt::format("{}: does nothing with '{}'", where_, spec.name));
    }
    if (operand.offset > spec.size || operand.extent > spec.size - operand.offset ||
        operand.offset == spec.size) {
      return InvalidArgument(fmt::format("{}: {} at offset {} of '{}', which has {}", where_,
                                         keel::ToString(operand.extent), operand.offset.count(),
                                         spec.name, keel::ToString(spec.size)));
    }
    if (operand.extent.count() == 0) operand.extent = spec.size - operand.offset;
    if (Writes(operand.access) && spec.access == BindingAccess::kIn) {
      return InvalidArgument(
          fmt::format("{}: writes '{}', which is declared 'in'", where_, spec.name));
    }
    operands_.push_back(operand);
    return OkStatus();
  }

  std::vector<BindingSpec>& bindings_;
  std::vector<bool>& opaque_;
  std::vector<std::vector<Operand>> written_;  // by binding, of outputs
  // Of the command that is looked at.
  std::vector<Operand> operands_;
  std::string where_;
};

// Which policies an access leaves to choose from.
Status CheckPolicy(const BindingSpec& spec, bool opaque) {
  const auto refuse = [&](std::string_view why) {
    return InvalidArgument(fmt::format("binding '{}' ({}): policy '{}' {}", spec.name,
                                       AccessName(spec.access), PolicyName(spec.policy), why));
  };
  switch (spec.access) {
    case BindingAccess::kScratch:
      if (spec.policy != Policy::kAuto && spec.policy != Policy::kInPlace) {
        return refuse("is about the caller's memory, and scratch has none");
      }
      return OkStatus();
    case BindingAccess::kResident:
      if (spec.policy != Policy::kAuto && spec.policy != Policy::kResident) {
        return refuse("contradicts it: declare it in-out");
      }
      return OkStatus();
    case BindingAccess::kIn:
    case BindingAccess::kOut:
    case BindingAccess::kInOut:
      break;
  }
  if (spec.policy == Policy::kPatch && opaque) {
    return refuse("rewrites explicit commands, and a traced or eager one uses it");
  }
  return OkStatus();
}

}  // namespace

Result<BindingId> Program::Find(std::string_view name) const {
  std::string names;
  for (std::uint32_t i = 0; i < bindings_.size(); ++i) {
    if (bindings_[i].name == name) return BindingId{i};
    names += (i == 0 ? "" : ", ") + bindings_[i].name;
  }
  return NotFound(fmt::format("program '{}' has no binding '{}': it has {}", name_, name,
                              names.empty() ? "none" : names));
}

Bytes Program::scratch_bytes() const {
  Bytes sum;
  for (const BindingSpec& spec : bindings_) {
    if (spec.access != BindingAccess::kScratch) continue;
    sum += AlignUp(spec.size, kScratchAlignment).value_or(spec.size);
  }
  return sum;
}

ProgramBuilder::ProgramBuilder(std::string name) : program_(std::make_shared<Program>()) {
  program_->name_ = std::move(name);
}

BindingId ProgramBuilder::Bind(BindingSpec spec) {
  program_->bindings_.push_back(std::move(spec));
  return BindingId{static_cast<std::uint32_t>(program_->bindings_.size() - 1)};
}

void ProgramBuilder::Kernel(hal::KernelHandle kernel, const hal::LaunchDims& dims,
                            std::vector<Argument> arguments) {
  program_->commands_.emplace_back(command::Kernel{kernel, dims, std::move(arguments)});
}

void ProgramBuilder::Copy(Operand destination, Operand source) {
  program_->commands_.emplace_back(command::Copy{destination, source});
}

void ProgramBuilder::Fill(Operand destination, std::uint32_t value, std::uint32_t width) {
  program_->commands_.emplace_back(command::Fill{destination, value, width});
}

void ProgramBuilder::Call(const hal::HostCall& call) {
  program_->commands_.emplace_back(command::Call{call});
}

void ProgramBuilder::Traced(std::string name, std::vector<Operand> uses, TraceFunction function) {
  program_->commands_.emplace_back(
      command::Traced{std::move(name), std::move(function), std::move(uses)});
}

void ProgramBuilder::Recorded(std::string name, std::vector<Operand> uses, TraceFunction function) {
  program_->commands_.emplace_back(
      command::Traced{std::move(name), std::move(function), std::move(uses), /*recorded=*/true});
}

void ProgramBuilder::Eager(std::string name, std::vector<Operand> uses, TraceFunction function) {
  program_->commands_.emplace_back(
      command::Eager{std::move(name), std::move(function), std::move(uses)});
}

void ProgramBuilder::Keep(std::shared_ptr<const void> what) {
  program_->kept_.push_back(std::move(what));
}

Result<std::shared_ptr<const Program>> ProgramBuilder::Build() && {
  Program& program = *program_;
  for (std::size_t i = 0; i < program.bindings_.size(); ++i) {
    const BindingSpec& spec = program.bindings_[i];
    if (spec.name.empty()) return InvalidArgument(fmt::format("binding {} has no name", i));
    if (spec.size.count() == 0) {
      return InvalidArgument(fmt::format("binding '{}' has no bytes", spec.name));
    }
    const auto same = [&](const BindingSpec& other) { return other.name == spec.name; };
    if (std::any_of(program.bindings_.begin(),
                    program.bindings_.begin() + static_cast<std::ptrdiff_t>(i), same)) {
      return InvalidArgument(fmt::format("two bindings are named '{}'", spec.name));
    }
  }
  program.opaque_.assign(program.bindings_.size(), false);
  Checker checker(program.bindings_, program.opaque_);
  for (std::size_t i = 0; i < program.commands_.size(); ++i) {
    KEEL_TRY(checker.Check(i, program.commands_[i]));
    program.has_traced_ |= std::holds_alternative<command::Traced>(program.commands_[i]);
  }
  for (std::size_t i = 0; i < program.bindings_.size(); ++i) {
    KEEL_TRY(CheckPolicy(program.bindings_[i], program.opaque_[i]));
  }
  return std::shared_ptr<const Program>(std::move(program_));
}

}  // namespace keel::graph
