#include "capi/handles.h"

#include <fmt/format.h>

#include <cstdint>
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
constexpr std::uint64_t kMark = 0x4b;
constexpr int kMarkShift = 56;
constexpr int kKindShift = 52;
constexpr int kForkShift = 40;
constexpr std::uint64_t kForkMask = 0xfff;
constexpr std::uint64_t kMostNumber = (std::uint64_t{1} << kForkShift) - 1;

enum class Kind : std::uint8_t { kDevice = 1, kStream = 2 };

std::string_view NameOf(std::uint64_t kind) {
  if (kind == static_cast<std::uint64_t>(Kind::kDevice)) return "device";
  if (kind == static_cast<std::uint64_t>(Kind::kStream)) return "stream";
  return "";
}

template <class Handle>
constexpr Kind kKindOf = std::is_same_v<Handle, keel_device> ? Kind::kDevice : Kind::kStream;

// What can be told without the table.
Status CheckShape(std::uint64_t value, Kind kind) {
  const auto wanted = static_cast<std::uint64_t>(kind);
  if (value == 0) return InvalidArgument(fmt::format("the {} is NULL", NameOf(wanted)));
  const std::uint64_t found = (value >> kKindShift) & 0xf;
  if (value >> kMarkShift != kMark || NameOf(found).empty()) {
    return InvalidArgument(fmt::format("{:#x} is not the handle of a {}", value, NameOf(wanted)));
  }
  if (found != wanted) {
    return InvalidArgument(fmt::format("{:#x} is the handle of a {}, not of a {}", value,
                                       NameOf(found), NameOf(wanted)));
  }
  if (((value >> kForkShift) & kForkMask) != (ForkGeneration() & kForkMask)) {
    return FailedPrecondition(
        fmt::format("{:#x} is the handle of a {} of the process that this one was forked from",
                    value, NameOf(wanted)));
  }
  return OkStatus();
}

template <class Object, class Handle>
class Table {
 public:
  Result<Handle> Add(std::shared_ptr<Object> object) {
    const WriterLock lock(mutex_);
    if (last_ == kMostNumber) return ResourceExhausted("no more handles");
    const std::uint64_t value = (kMark << kMarkShift) |
                                (static_cast<std::uint64_t>(kKindOf<Handle>) << kKindShift) |
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
        fmt::format("{:#x} is the handle of a {} that was closed, or never was one", value,
                    NameOf(static_cast<std::uint64_t>(kKindOf<Handle>))));
  }

  mutable SharedMutex mutex_;
  std::uint64_t last_ KEEL_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::uint64_t, std::shared_ptr<Object>> objects_ KEEL_GUARDED_BY(mutex_);
};

struct Tables {
  Table<DeviceMemory, keel_device> devices;
  Table<StreamObject, keel_stream> streams;
};

Tables& All() {
  static constinit PerProcess<Tables> tables;
  return tables.Get();
}

template <class Handle>
Status Check(Handle handle) {
  return CheckShape(reinterpret_cast<std::uintptr_t>(handle), kKindOf<Handle>);
}

}  // namespace

Result<keel_device> Add(std::shared_ptr<DeviceMemory> memory) {
  return All().devices.Add(std::move(memory));
}
Result<keel_stream> Add(std::shared_ptr<StreamObject> stream) {
  return All().streams.Add(std::move(stream));
}

Result<std::shared_ptr<DeviceMemory>> Find(keel_device device) {
  KEEL_TRY(Check(device));
  return All().devices.Find(device);
}

Result<std::shared_ptr<StreamObject>> Find(const std::shared_ptr<DeviceMemory>& memory,
                                           keel_stream stream) {
  if (stream == nullptr) {
    KEEL_ASSIGN(hal::Stream shared,
                hal::Stream::Default(memory->device(), hal::DefaultStream::kLegacy));
    return std::make_shared<StreamObject>(memory, std::move(shared));
  }
  KEEL_TRY(Check(stream));
  KEEL_ASSIGN(std::shared_ptr<StreamObject> object, All().streams.Find(stream));
  if (object->memory->device() != memory->device()) {
    return InvalidArgument(fmt::format("the stream is of device {}, not of device {}",
                                       object->memory->name().ToString(),
                                       memory->name().ToString()));
  }
  return object;
}

Result<std::shared_ptr<DeviceMemory>> Remove(keel_device device) {
  KEEL_TRY(Check(device));
  return All().devices.Remove(device);
}
Result<std::shared_ptr<StreamObject>> Remove(keel_stream stream) {
  KEEL_TRY(Check(stream));
  return All().streams.Remove(stream);
}

}  // namespace keel::capi
