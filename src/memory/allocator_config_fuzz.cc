// libFuzzer target: KEEL_ALLOC_CONF is text from outside. It may not crash the parser, and what is
// accepted must mean the same when it is written down and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "keel/memory/allocator_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using keel::memory::AllocatorConfig;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const keel::Result<AllocatorConfig> config = AllocatorConfig::Parse(text, "FUZZ");
  if (!config.ok()) {
    if (!config.status().message().starts_with("FUZZ: ")) std::abort();
    return 0;
  }
  const keel::Result<AllocatorConfig> again = AllocatorConfig::Parse(config->ToString(), "FUZZ");
  if (!again.ok() || !(*again == *config)) std::abort();
  if (again->ToString() != config->ToString()) std::abort();
  return 0;
}
