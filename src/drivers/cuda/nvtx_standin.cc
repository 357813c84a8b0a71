// A profiler for tests: takes the ranges of a domain and writes them down. Shaped as the vendor's
// tools are, as seen from the other side of the protocol than nvtx.cc.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

using Function = void (*)();

struct Event {
  std::uint16_t version;
  std::uint16_t size;
  std::uint32_t category;
  std::int32_t color_type;
  std::uint32_t color;
  std::int32_t payload_type;
  std::int32_t reserved;
  std::uint64_t payload;
  std::int32_t message_type;
  union {
    const char* ascii;
    const wchar_t* wide;
  } message;
};

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

// Of one thread: that is what the tests have.
std::string& Text() {
  static std::string text;
  return text;
}
char domain_of_keel;

void* CreateDomain(const char* name) {
  Text() += std::string("domain ") + name + "\n";
  return &domain_of_keel;
}

int Push(void* domain, const Event* event) {
  const bool right = domain == &domain_of_keel && event->version == 3 &&
                     event->size == sizeof(Event) && event->message_type == 1;
  Text() += right ? std::string("push ") + event->message.ascii + "\n" : "push of nonsense\n";
  return 0;
}

int Pop(void* domain) {
  Text() += domain == &domain_of_keel ? "pop\n" : "pop of nonsense\n";
  return 0;
}

bool Set(const Callbacks& callbacks, int module, unsigned int number, Function function) {
  Function** table = nullptr;
  unsigned int count = 0;
  if (callbacks.get_module(module, &table, &count) != 1 || number >= count) return false;
  *table[number] = function;
  return true;
}

// What each module must have: tools write into all of them.
bool HasEveryFunction(const Callbacks& callbacks) {
  const unsigned int expected[] = {0, 16, 9, 15, 7, 16, 7};
  for (int module = 1; module <= 6; ++module) {
    Function** table = nullptr;
    unsigned int count = 0;
    if (callbacks.get_module(module, &table, &count) != 1 || count != expected[module])
      return false;
    for (unsigned int number = 1; number < count; ++number) {
      if (table[number] == nullptr) return false;
    }
    if (table[count] != nullptr) return false;
  }
  return callbacks.get_module(7, nullptr, nullptr) == 0;
}

}  // namespace

extern "C" {

// NOLINTNEXTLINE(readability-identifier-naming): the protocol's name
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    const void* (*get_table)(std::uint32_t)) {
  const char* const mood = std::getenv("KEEL_NVTX_STANDIN");
  if (mood != nullptr && std::strcmp(mood, "refuse") == 0) return 0;
  const auto* const callbacks = static_cast<const Callbacks*>(get_table(1));
  const auto* const version = static_cast<const VersionInfo*>(get_table(3));
  if (callbacks == nullptr || callbacks->size < sizeof(Callbacks)) return 0;
  if (version == nullptr || version->version != 3 || get_table(2) != nullptr) return 0;
  version->set_tools_version(3);
  if (!HasEveryFunction(*callbacks)) return 0;
  if (mood != nullptr && std::strcmp(mood, "silent") == 0) return 1;
  return Set(*callbacks, 5, 4, reinterpret_cast<Function>(&Push)) &&
                 Set(*callbacks, 5, 5, reinterpret_cast<Function>(&Pop)) &&
                 Set(*callbacks, 5, 12, reinterpret_cast<Function>(&CreateDomain))
             ? 1
             : 0;
}

// NOLINTNEXTLINE(readability-identifier-naming)
__attribute__((visibility("default"))) const char* KeelRecordedRanges() { return Text().c_str(); }

}  // extern "C"
