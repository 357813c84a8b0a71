#include "drivers/sim/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <utility>

namespace keel::sim {
namespace {

hal::NodeHandle NextNode() {
  static std::atomic<std::uint64_t> next{1};
  return {next.fetch_add(1, std::memory_order_relaxed)};
}

// Handles are handed out in ascending order, so the nodes of a graph are sorted by them.
const hal::NodeHandle* FindNode(const std::vector<hal::NodeHandle>& handles, hal::NodeHandle node) {
  const auto found = std::lower_bound(handles.begin(), handles.end(), node);
  return found != handles.end() && *found == node ? &*found : nullptr;
}

const char* KindName(std::size_t kind) {
  constexpr const char* kNames[] = {"an empty node", "a kernel",     "a copy",
                                    "a fill",        "a host call",  "a value write",
                                    "a value wait",  "a child graph"};
  static_assert(std::size(kNames) == std::variant_size_v<StoredCommand>);
  return kNames[kind];
}

// What keeps the parameters of one list of nodes from being another's, and the node of `want` that
// is to blame, if one is.
using Child = std::shared_ptr<const Program>;
struct Difference {
  std::string reason;
  std::optional<std::size_t> node;
};
std::optional<Difference> Compare(const std::vector<Program::Node>& have,
                                  const std::vector<Program::Node>& want) {
  if (have.size() != want.size()) {
    return Difference{
        fmt::format("topology changed: {} nodes instead of {}", want.size(), have.size()), {}};
  }
  for (std::size_t i = 0; i < have.size(); ++i) {
    if (have[i].command.index() != want[i].command.index()) {
      return Difference{fmt::format("node {} is {}, not {}", i, KindName(want[i].command.index()),
                                    KindName(have[i].command.index())),
                        i};
    }
    if (have[i].dependencies != want[i].dependencies) {
      return Difference{fmt::format("topology changed: node {} has other dependencies", i), i};
    }
    const auto* child = std::get_if<Child>(&have[i].command);
    if (child == nullptr) continue;
    const auto inner = Compare((*child)->nodes, std::get<Child>(want[i].command)->nodes);
    if (inner) return Difference{fmt::format("in child graph {}: {}", i, inner->reason), i};
  }
  return std::nullopt;
}

}  // namespace

Result<std::uint32_t> SimGraph::IndexLocked(hal::NodeHandle node) const {
  const hal::NodeHandle* found = FindNode(content_.handles, node);
  if (found == nullptr) {
    return InvalidArgument(fmt::format("node {} is not a node of this graph", node.value));
  }
  return static_cast<std::uint32_t>(found - content_.handles.data());
}

Result<hal::NodeHandle> SimGraph::Add(std::span<const hal::NodeHandle> dependencies,
                                      StoredCommand command, int ordinal) {
  MutexLock lock(mutex_);
  std::vector<std::uint32_t> indices;
  for (const hal::NodeHandle node : dependencies) {
    KEEL_ASSIGN(const std::uint32_t index, IndexLocked(node));
    indices.push_back(index);
  }
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  const hal::NodeHandle handle = NextNode();
  content_.program.nodes.push_back({std::move(command), ordinal, std::move(indices)});
  content_.handles.push_back(handle);
  return handle;
}

std::vector<hal::NodeInfo> SimGraph::List() const {
  MutexLock lock(mutex_);
  std::vector<hal::NodeInfo> list;
  for (std::size_t i = 0; i < content_.handles.size(); ++i) {
    const Program::Node& node = content_.program.nodes[i];
    hal::NodeInfo info{content_.handles[i], node.command.index(), {}};
    for (const std::uint32_t index : node.dependencies) {
      info.dependencies.push_back(content_.handles[index]);
    }
    list.push_back(std::move(info));
  }
  return list;
}

bool SimGraph::AllReach(std::span<const hal::NodeHandle> last) const {
  MutexLock lock(mutex_);
  const std::vector<Program::Node>& nodes = content_.program.nodes;
  std::vector<bool> reaches(nodes.size());
  for (const hal::NodeHandle node : last) {
    if (const hal::NodeHandle* found = FindNode(content_.handles, node)) {
      reaches[static_cast<std::size_t>(found - content_.handles.data())] = true;
    }
  }
  // Dependencies point backwards, so one pass from the end finds all.
  for (std::size_t i = nodes.size(); i-- > 0;) {
    if (!reaches[i]) return false;
    for (const std::uint32_t index : nodes[i].dependencies) reaches[index] = true;
  }
  return true;
}

SimGraph::Snapshot SimGraph::Copy() const {
  MutexLock lock(mutex_);
  return content_;
}

SimExec::SimExec(SimGraph::Snapshot content)
    : program_(std::make_shared<Program>(std::move(content.program))),
      handles_(std::move(content.handles)) {}

SimExec::Launch SimExec::NewLaunch() {
  MutexLock lock(mutex_);
  Launch launch{program_, last_launch_, std::make_shared<Ticket>()};
  if (launch.previous != nullptr && launch.previous->state() != Ticket::State::kPending) {
    launch.previous = nullptr;
  }
  last_launch_ = launch.done;
  return launch;
}

hal::UpdateReport SimExec::Update(const SimGraph& graph) {
  SimGraph::Snapshot content = graph.Copy();
  MutexLock lock(mutex_);
  if (const auto difference = Compare(program_->nodes, content.program.nodes)) {
    hal::UpdateReport report{.updated = false, .reason = difference->reason, .node = {}};
    if (difference->node) report.node = content.handles[*difference->node];
    return report;
  }
  program_ = std::make_shared<Program>(std::move(content.program));
  return {true, {}, std::nullopt};
}

Status SimExec::SetParams(hal::NodeHandle node, StoredCommand command) {
  MutexLock lock(mutex_);
  const hal::NodeHandle* found = FindNode(handles_, node);
  if (found == nullptr) {
    return InvalidArgument(
        fmt::format("node {} is not a node of the graph that was instantiated", node.value));
  }
  const auto index = static_cast<std::size_t>(found - handles_.data());
  const StoredCommand& have = program_->nodes[index].command;
  if (have.index() != command.index()) {
    return InvalidArgument(fmt::format("node {} is {}, the new parameters are those of {}",
                                       node.value, KindName(have.index()),
                                       KindName(command.index())));
  }
  if (const auto* kernel = std::get_if<StoredKernel>(&command);
      kernel != nullptr && kernel->kernel != std::get<StoredKernel>(have).kernel) {
    return InvalidArgument(fmt::format("node {} launches '{}'; the new parameters are for '{}'",
                                       node.value, std::get<StoredKernel>(have).kernel->name,
                                       kernel->kernel->name));
  }
  if (const auto* child = std::get_if<Child>(&command)) {
    const auto difference = Compare(std::get<Child>(have)->nodes, (*child)->nodes);
    if (difference) {
      return InvalidArgument(
          fmt::format("node {}, a child graph: {}", node.value, difference->reason));
    }
  }
  // Ours alone: no launch is queued with it, so it may change in place. A launch takes its
  // reference under this lock; giving it up is release-ordered, and use_count is not, hence the
  // fence by way of the last launch's ticket.
  const bool idle = last_launch_ == nullptr || last_launch_->state() != Ticket::State::kPending;
  if (!idle || program_.use_count() > 1) program_ = std::make_shared<Program>(*program_);
  program_->nodes[index].command = std::move(command);
  return OkStatus();
}

}  // namespace keel::sim
