#include "drivers/cuda/nvtx.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>

#include "base/ranges.h"
#include "keel/base/log.h"

namespace keel::cuda {
namespace {

// --- What the vendor's protocol fixes ----------------------------------------------------------

using Function = void (*)();

constexpr std::uint32_t kVersion = 3;
constexpr std::uint32_t kCallbacksTable = 1;
constexpr std::uint32_t kVersionTable = 3;
constexpr std::int32_t kAsciiMessage = 1;

// How many functions each module has, the unused number 0 included.
constexpr std::array<unsigned int, 7> kFunctions = {0, 16, 9, 15, 7, 16, 7};
constexpr std::size_t kMostFunctions = 16;

constexpr std::size_t kDomains = 5;  // the module, and its functions
constexpr std::size_t kDomainRangePush = 4;
constexpr std::size_t kDomainRangePop = 5;
constexpr std::size_t kDomainCreate = 12;

struct Attributes {
  std::uint16_t version = kVersion;
  std::uint16_t size = sizeof(Attributes);
  std::uint32_t category = 0;
  std::int32_t color_type = 0;
  std::uint32_t color = 0;
  std::int32_t payload_type = 0;
  std::int32_t reserved = 0;
  std::uint64_t payload = 0;
  std::int32_t message_type = kAsciiMessage;
  const char* message = nullptr;
};
static_assert(sizeof(Attributes) == 48 && offsetof(Attributes, message) == 40);

using DomainCreate = void* (*)(const char* name);
using DomainRangePush = int (*)(void* domain, const Attributes* attributes);
using DomainRangePop = int (*)(void* domain);

struct Callbacks {
  std::size_t size;
  int (*get_module)(int module, Function*** table, unsigned int* count);
};
struct VersionInfo {
  std::size_t size;
  std::uint32_t version;
  std::uint32_t reserved;
  void (*set_tools_version)(std::uint32_t version);
};
using GetTable = const void* (*)(std::uint32_t id);
using Initialize = int (*)(GetTable get_table);

// --- What the profiler is given ----------------------------------------------------------------

// A profiler may change them at any time: to start and to stop.
std::array<std::array<Function, kMostFunctions>, kFunctions.size()> functions;
// Where they are, by module and number, and a null at the end.
std::array<std::array<Function*, kMostFunctions + 1>, kFunctions.size()> places;

template <class T>
T Find(std::size_t module, std::size_t number) {
  return reinterpret_cast<T>(
      std::atomic_ref(functions[module][number]).load(std::memory_order_relaxed));
}

int GetModule(int module, Function*** table, unsigned int* count) {
  const auto index = static_cast<std::size_t>(module);
  if (module < 1 || index >= kFunctions.size()) return 0;
  if (table != nullptr) *table = places[index].data();
  if (count != nullptr) *count = kFunctions[index];
  return 1;
}

const void* GetExportTable(std::uint32_t id) {
  static constexpr Callbacks kCallbacks{sizeof(Callbacks), &GetModule};
  static constexpr VersionInfo kInfo{sizeof(VersionInfo), kVersion, 0, [](std::uint32_t) {}};
  if (id == kCallbacksTable) return &kCallbacks;
  if (id == kVersionTable) return &kInfo;
  return nullptr;
}

// --- The sink ----------------------------------------------------------------------------------

void* domain = nullptr;

void Push(const char* name) {
  const auto push = Find<DomainRangePush>(kDomains, kDomainRangePush);
  if (push == nullptr) return;
  Attributes attributes;
  attributes.message = name;
  push(domain, &attributes);
}

void Pop() {
  if (const auto pop = Find<DomainRangePop>(kDomains, kDomainRangePop); pop != nullptr) pop(domain);
}

constexpr RangeSink kSink{&Push, &Pop};

void Refuse(const char* path, const char* why) {
  if (LogEnabled(LogLevel::kInfo)) {
    Log(LogLevel::kInfo, fmt::format("no ranges: NVTX_INJECTION64_PATH says '{}': {}", path, why));
  }
}

void Attach() {
  const char* const path = std::getenv("NVTX_INJECTION64_PATH");
  if (path == nullptr || *path == '\0') return;
  void* const library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const error = dlerror();
    return Refuse(path, error == nullptr ? "unknown" : error);
  }
  const auto initialize = reinterpret_cast<Initialize>(dlsym(library, "InitializeInjectionNvtx2"));
  if (initialize == nullptr) return Refuse(path, "it is not a profiler's: it has no entry point");
  for (std::size_t module = 1; module < kFunctions.size(); ++module) {
    for (std::size_t number = 1; number < kFunctions[module]; ++number) {
      places[module][number] = &functions[module][number];
    }
  }
  if (initialize(&GetExportTable) == 0) return Refuse(path, "it did not start");
  const auto create = Find<DomainCreate>(kDomains, kDomainCreate);
  if (create == nullptr || Find<DomainRangePush>(kDomains, kDomainRangePush) == nullptr) {
    return Refuse(path, "it takes no ranges in domains");
  }
  domain = create("keel");
  SetRangeSink(&kSink);
}

}  // namespace

void AttachProfiler() {
  static std::once_flag once;
  std::call_once(once, Attach);
}

}  // namespace keel::cuda
