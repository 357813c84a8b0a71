#include "capi/handles.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "base/fork.h"
#include "keel/base/mutex.h"

namespace keel::capi {
namespace {

// From the top: a mark that no pointer of a program has, the kind, the generation of forks, and a
// number.
constexpr std::uint64_t kMark = 0x25;
constexpr int kMarkShift = 57;
constexpr int kKindShift = 52;
constexpr std::uint64_t kKindMask = 0x1f;
constexpr int kForkShift = 40;
constexpr std::uint64_t kForkMask = 0xfff;
constexpr std::uint64_t kMostNumber = (std::uint64_t{1} << kForkShift) - 1;

// All kinds; a kind's number is its place here, from 1.
template <class... Handles>
struct KindList {
  template <class Handle>
  static consteval std::uint64_t NumberOf() {
    static_assert((std::is_same_v<Handle, Handles> || ...), "not in the list of kinds");
    constexpr std::array<bool, sizeof...(Handles)> kSame = {std::is_same_v<Handle, Handles>...};
    return static_cast<std::uint64_t>(std::find(kSame.begin(), kSame.end(), true) - kSame.begin()) +
           1;
  }
  static constexpr std::size_t kCount = sizeof...(Handles);
};
using Kinds =
    KindList<keel_device, keel_stream, keel_module, keel_kernel, keel_program_builder, keel_program,
             keel_scratch_arena, keel_memory_budget, keel_executable, keel_lease, keel_output,
             keel_orchestrator, keel_task, keel_task_call, keel_physical_memory, keel_rerecorder>;
static_assert(Kinds::kCount <= kKindMask);
constexpr std::array<std::string_view, Kinds::kCount> kNames = {
    "device",     "stream",        "module",        "kernel",     "program builder",
    "program",    "scratch arena", "memory budget", "executable", "lease",
    "output",     "orchestrator",  "task",          "task call",  "physical memory",
    "re-recorder"};

template <class Handle>
constexpr std::uint64_t kKindOf = Kinds::NumberOf<Handle>();

// Empty: there is no such kind.
std::string_view NameOf(std::uint64_t kind) {
  return kind >= 1 && kind <= kNames.size() ? kNames[kind - 1] : "";
}

// "a stream", "an executable"
std::string Named(std::uint64_t kind) {
  const std::string_view name = NameOf(kind);
  return fmt::format("{} {}", name.starts_with('e') || name.starts_with('o') ? "an" : "a", name);
}

// What can be told without the table.
Status CheckShape(std::uint64_t value, std::uint64_t wanted) {
  if (value == 0) return InvalidArgument(fmt::format("the {} is NULL", NameOf(wanted)));
  const std::uint64_t found = (value >> kKindShift) & kKindMask;
  if (value >> kMarkShift != kMark || NameOf(found).empty()) {
    return InvalidArgument(fmt::format("{:#x} is not the handle of {}", value, Named(wanted)));
  }
  if (found != wanted) {
    return InvalidArgument(
        fmt::format("{:#x} is the handle of {}, not of {}", value, Named(found), Named(wanted)));
  }
  if (((value >> kForkShift) & kForkMask) != (ForkGeneration() & kForkMask)) {
    return FailedPrecondition(
        fmt::format("{:#x} is the handle of {} of the process that this one was forked from", value,
                    Named(wanted)));
  }
  return OkStatus();
}

template <class Handle>
class Table {
 public:
  using Object = ObjectOf<Handle>;

  Result<Handle> Add(std::shared_ptr<Object> object) {
    const WriterLock lock(mutex_);
    if (last_ == kMostNumber) return ResourceExhausted("no more handles");
    const std::uint64_t value = (kMark << kMarkShift) | (kKindOf<Handle> << kKindShift) |
                                ((ForkGeneration() & kForkMask) << kForkShift) | ++last_;
    objects_.emplace(value, std::move(object));
    return reinterpret_cast<Handle>(value);
  }
  Result<std::shared_ptr<Object>> Find(Handle handle) const {
    const auto value = reinterpret_cast<std::uintptr_t>(handle);
    const ReaderLock lock(mutex_);
    const auto found = objects_.find(value);
    if (found == objects_.end()) return Gone(value);
    return found->second;
  }
  Result<std::shared_ptr<Object>> Remove(Handle handle) {
    const auto value = reinterpret_cast<std::uintptr_t>(handle);
    const WriterLock lock(mutex_);
    const auto found = objects_.find(value);
    if (found == objects_.end()) return Gone(value);
    std::shared_ptr<Object> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }

 private:
  static Status Gone(std::uint64_t value) {
    return InvalidArgument(
        fmt::format("{:#x} is the handle of {} that was closed, or never was one", value,
                    Named(kKindOf<Handle>)));
  }

  mutable SharedMutex mutex_;
  std::uint64_t last_ KEEL_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::uint64_t, std::shared_ptr<Object>> objects_ KEEL_GUARDED_BY(mutex_);
};

template <class Kinds>
struct TablesOf;
template <class... Handles>
struct TablesOf<KindList<Handles...>> : Table<Handles>... {};
using Tables = TablesOf<Kinds>;

Tables& All() {
  static constinit PerProcess<Tables> tables;
  return tables.Get();
}

template <class Handle>
Table<Handle>& TableOf() {
  return All();
}

template <class Handle>
Status Check(Handle handle) {
  return CheckShape(reinterpret_cast<std::uintptr_t>(handle), kKindOf<Handle>);
}

}  // namespace

template <class Handle>
Result<Handle> Add(std::shared_ptr<ObjectOf<Handle>> object) {
  return TableOf<Handle>().Add(std::move(object));
}

template <class Handle>
Result<std::shared_ptr<ObjectOf<Handle>>> Find(Handle handle) {
  KEEL_TRY(Check(handle));
  return TableOf<Handle>().Find(handle);
}

template <class Handle>
Result<std::shared_ptr<ObjectOf<Handle>>> Remove(Handle handle) {
  KEEL_TRY(Check(handle));
  return TableOf<Handle>().Remove(handle);
}

// Every kind of handle has all three.
#define KEEL_CAPI_HANDLE(Handle)                                          \
  template Result<Handle> Add<Handle>(std::shared_ptr<ObjectOf<Handle>>); \
  template Result<std::shared_ptr<ObjectOf<Handle>>> Find(Handle);        \
  template Result<std::shared_ptr<ObjectOf<Handle>>> Remove(Handle)
KEEL_CAPI_HANDLE(keel_device);
KEEL_CAPI_HANDLE(keel_stream);
KEEL_CAPI_HANDLE(keel_module);
KEEL_CAPI_HANDLE(keel_kernel);
KEEL_CAPI_HANDLE(keel_program_builder);
KEEL_CAPI_HANDLE(keel_program);
KEEL_CAPI_HANDLE(keel_scratch_arena);
KEEL_CAPI_HANDLE(keel_memory_budget);
KEEL_CAPI_HANDLE(keel_executable);
KEEL_CAPI_HANDLE(keel_lease);
KEEL_CAPI_HANDLE(keel_output);
KEEL_CAPI_HANDLE(keel_physical_memory);
KEEL_CAPI_HANDLE(keel_rerecorder);
KEEL_CAPI_HANDLE(keel_orchestrator);
KEEL_CAPI_HANDLE(keel_task);
KEEL_CAPI_HANDLE(keel_task_call);
#undef KEEL_CAPI_HANDLE

Result<std::shared_ptr<StreamObject>> Find(const std::shared_ptr<DeviceMemory>& memory,
                                           keel_stream stream) {
  if (stream == nullptr) {
    KEEL_ASSIGN(hal::Stream shared,
                hal::Stream::Default(memory->device(), hal::DefaultStream::kLegacy));
    return std::make_shared<StreamObject>(memory, std::move(shared));
  }
  KEEL_ASSIGN(std::shared_ptr<StreamObject> object, Find(stream));
  if (object->memory->device() != memory->device()) {
    return InvalidArgument(fmt::format("the stream is of device {}, not of device {}",
                                       object->memory->name().ToString(),
                                       memory->name().ToString()));
  }
  return object;
}

}  // namespace keel::capi
