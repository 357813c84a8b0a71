// libFuzzer target: configuration strings and sizes are text from outside. Neither may crash, and
// what one accepts must mean the same when it is written down and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "keel/base/config_string.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const keel::Result<keel::Bytes> bytes = keel::ParseBytes(text); bytes.ok()) {
    const keel::Result<keel::Bytes> again = keel::ParseBytes(std::to_string(bytes->count()));
    if (!again.ok() || *again != *bytes) std::abort();
  }
  const keel::Result<keel::ConfigString> config = keel::ConfigString::Parse("FUZZ", text);
  if (!config.ok()) return 0;
  keel::ConfigReader reader(*config);
  std::string again;
  for (const keel::ConfigString::Entry& entry : config->entries()) {
    keel::Bytes bytes;
    bool flag = false;
    double number = 0;
    reader.Take(entry.key, &bytes);
    reader.Take(entry.key, &flag);
    reader.Take(entry.key, &number, 0, 1);
    again += (again.empty() ? "" : ",") + entry.key + ":" + entry.value;
    if (!entry.is_list) continue;
    again += "[";
    for (const keel::ConfigString::Item& item : entry.items) {
      if (again.back() != '[') again += ",";
      again += (item.key.empty() ? "" : item.key + ":") + item.value;
    }
    again += "]";
  }
  (void)reader.Finish();
  const keel::Result<keel::ConfigString> second = keel::ConfigString::Parse("FUZZ", again);
  if (!second.ok() || second->entries().size() != config->entries().size()) std::abort();
  return 0;
}
