#include "keel/memory/allocator_config.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "base/quote.h"
#include "keel/base/config_string.h"
#include "keel/base/log.h"
#include "keel/telemetry/event_log.h"

namespace keel::memory {
namespace {

using Config = AllocatorConfig;

// --- Values as text ------------------------------------------------------------------------------

// Exact, unlike ToString(Bytes).
std::string Exact(Bytes bytes) {
  if (bytes == kUnlimited) return "unlimited";
  const std::pair<Bytes, const char*> units[] = {
      {1_TiB, "TiB"}, {1_GiB, "GiB"}, {1_MiB, "MiB"}, {1_KiB, "KiB"}};
  for (const auto& [unit, name] : units) {
    if (!bytes.empty() && IsAligned(bytes, unit)) return std::to_string(bytes / unit) + name;
  }
  return std::to_string(bytes.count());
}

std::string Number(double value) {
  char text[32] = {};
  return {text, std::to_chars(text, text + sizeof(text), value).ptr};
}

std::string Word(bool value) { return value ? "true" : "false"; }

// --- One key -------------------------------------------------------------------------------------

struct Input {
  const ConfigString& text;
  ConfigReader& reader;
  std::string_view key;

  const ConfigString::Entry* entry() const { return text.Find(key); }
  bool Is(std::string_view word) const {
    return entry() != nullptr && !entry()->is_list && Lower(entry()->value) == word;
  }
};

struct Key {
  std::string_view name;
  std::string (*values)();
  void (*take)(const Input&, Config&);
  std::string (*format)(const Config&);  // null: another key's, or no field at all
  std::string_view meaning;
  bool only_native = false;  // there is nothing for it to act on without a pool
  std::string_view no_effect = {};
};

template <bool Config::* kField>
Key Switch(std::string_view name, std::string_view meaning) {
  return {name, +[] { return std::string("true or false"); },
          +[](const Input& in, Config& config) { in.reader.Take(in.key, &(config.*kField)); },
          +[](const Config& config) { return Word(config.*kField); }, meaning};
}

// PyTorch's other name of a switch, which its builds for other devices have.
template <bool Config::* kField>
Key Alias(std::string_view name, std::string_view meaning) {
  Key key = Switch<kField>(name, meaning);
  key.format = nullptr;
  return key;
}

Key Ignored(std::string_view name, std::string_view meaning, std::string_view reason) {
  Key key;
  key.name = name;
  key.values = +[] { return std::string("true or false"); };
  key.take = +[](const Input& in, Config&) {
    bool unused = false;
    in.reader.Take(in.key, &unused);
  };
  key.format = nullptr;
  key.meaning = meaning;
  key.no_effect = reason;
  return key;
}

template <std::int64_t Config::* kField, std::int64_t kLeast, std::int64_t kMost>
Key Whole(std::string_view name, std::string_view meaning) {
  return {name, +[] { return std::to_string(kLeast) + " to " + std::to_string(kMost); },
          +[](const Input& in, Config& config) {
            in.reader.Take(in.key, &(config.*kField), kLeast, kMost);
          },
          +[](const Config& config) { return std::to_string(config.*kField); }, meaning};
}

template <double Config::* kField>
Key Fraction(std::string_view name, std::string_view meaning) {
  return {name, +[] { return std::string("0 to 1"); },
          +[](const Input& in, Config& config) { in.reader.Take(in.key, &(config.*kField), 0, 1); },
          +[](const Config& config) { return Number(config.*kField); }, meaning};
}

// A size with a unit. kMost is kUnlimited where that may be said.
template <std::uint64_t kLeast, std::uint64_t kMost>
std::string SizeValues() {
  const std::string least = "a size from " + Exact(Bytes(kLeast));
  if (Bytes(kMost) != kUnlimited) return least + " to " + Exact(Bytes(kMost));
  return (kLeast == 0 ? "a size" : least) + ", or unlimited";
}

template <Bytes Config::* kField, std::uint64_t kLeast, std::uint64_t kMost>
Key Size(std::string_view name, std::string_view meaning) {
  return {name, SizeValues<kLeast, kMost>,
          +[](const Input& in, Config& config) {
            std::string text;
            in.reader.Take(in.key, &text);
            if (text.empty()) return;
            if (Bytes(kMost) == kUnlimited && in.Is("unlimited")) {
              config.*kField = kUnlimited;
              return;
            }
            const Result<Bytes> value = ParseBytes(text);
            if (!value.ok() || *value < Bytes(kLeast) || *value > Bytes(kMost)) {
              return in.reader.Reject(in.key,
                                      Quote(text) + " is not " + SizeValues<kLeast, kMost>());
            }
            config.*kField = *value;
          },
          +[](const Config& config) { return Exact(config.*kField); }, meaning};
}

constexpr std::int64_t kMostMebibytes = static_cast<std::int64_t>(kUnlimited.count() >> 20);

// A number of MiB, as PyTorch's keys that end in _mb take it.
template <Bytes Config::* kField, std::int64_t kLeast, bool kCanBeUnlimited = false>
Key Mebibytes(std::string_view name, std::string_view meaning) {
  return {name,
          +[] {
            return std::to_string(kLeast) + " and more, in MiB" +
                   (kCanBeUnlimited ? ", or unlimited" : "");
          },
          +[](const Input& in, Config& config) {
            if (kCanBeUnlimited && in.Is("unlimited")) {
              std::string word;
              in.reader.Take(in.key, &word);
              config.*kField = kUnlimited;
              return;
            }
            std::int64_t value = -1;
            in.reader.Take(in.key, &value, kLeast, kMostMebibytes);
            if (value >= 0) config.*kField = static_cast<std::uint64_t>(value) * 1_MiB;
          },
          +[](const Config& config) {
            const Bytes value = config.*kField;
            return value == kUnlimited ? "unlimited" : std::to_string(value / 1_MiB);
          },
          meaning};
}

Key OnlyNative(Key key) {
  key.only_native = true;
  return key;
}

// --- Keys with a form of their own ---------------------------------------------------------------

void TakeBackend(const Input& in, Config& config) {
  std::string word;
  in.reader.Take(in.key, &word);
  word = Lower(word);
  if (word.empty()) return;
  if (word == "native") {
    config.backend = Config::Backend::kNative;
  } else if (word == "passthrough") {
    config.backend = Config::Backend::kPassthrough;
  } else if (word.ends_with("mallocasync")) {
    in.reader.Reject(in.key, Quote(in.entry()->value) +
                                 " (the vendor's own pool) is not offered; native, Keel's "
                                 "allocator, is ordered by streams as well");
  } else {
    in.reader.Reject(in.key, Quote(in.entry()->value) + " is neither native nor passthrough");
  }
}

constexpr std::pair<Config::Debug, std::string_view> kDebugWords[] = {
    {Config::Debug::kOff, "off"},       {Config::Debug::kGuards, "guards"},
    {Config::Debug::kPoison, "poison"}, {Config::Debug::kFull, "full"},
    {Config::Debug::kOff, "false"},     {Config::Debug::kOff, "0"},
    {Config::Debug::kOff, "no"},        {Config::Debug::kFull, "true"},
    {Config::Debug::kFull, "1"},        {Config::Debug::kFull, "yes"},
    {Config::Debug::kFull, "on"},
};

void TakeDebug(const Input& in, Config& config) {
  std::string word;
  in.reader.Take(in.key, &word);
  if (word.empty()) return;
  for (const auto& [mode, name] : kDebugWords) {
    if (Lower(word) == name) {
      config.debug = mode;
      return;
    }
  }
  in.reader.Reject(in.key, Quote(word) + " is none of off, guards, poison, full (or true, false)");
}

std::string FormatDebug(const Config& config) {
  for (const auto& [mode, name] : kDebugWords) {
    if (mode == config.debug) return std::string(name);
  }
  return "off";
}

void TakeThreshold(const Input& in, Config& config) {
  double value = 0;
  in.reader.Take(in.key, &value, 0, 1);
  if (value == 1) return in.reader.Reject(in.key, "1 would never act; give less than 1, or 0: off");
  if (in.entry() != nullptr) config.garbage_collection_threshold = value;
}

void TakeStagingThreshold(const Input& in, Config& config) {
  std::string text;
  in.reader.Take(in.key, &text);
  if (text.empty()) return;
  if (in.Is("auto")) {
    config.staging_threshold = std::nullopt;
    return;
  }
  const Result<Bytes> value = in.Is("unlimited") ? kUnlimited : ParseBytes(text);
  if (!value.ok()) {
    return in.reader.Reject(in.key, Quote(text) + " is not a size, unlimited or auto");
  }
  config.staging_threshold = *value;
}

void TakeUpkeep(const Input& in, Config& config) { in.reader.Take(in.key, &config.upkeep, 0, 1); }

void TakeHistory(const Input& in, Config& config) {
  auto value = static_cast<std::int64_t>(config.history);
  in.reader.Take(in.key, &value, 0, static_cast<std::int64_t>(telemetry::EventLog::kMaxCapacity));
  config.history = static_cast<std::uint64_t>(value);
}

void TakeRegisterThreads(const Input& in, Config& config) {
  std::int64_t value = config.pinned_num_register_threads;
  in.reader.Take(in.key, &value, 1, 128);
  if (!std::has_single_bit(static_cast<std::uint64_t>(value))) {
    return in.reader.Reject(in.key, std::to_string(value) + " is not a power of two");
  }
  config.pinned_num_register_threads = value;
}

// 0, or a power of two; false for anything else.
bool ParseDivisions(std::string_view text, std::uint32_t* divisions) {
  constexpr std::uint32_t kMost = 1 << 20;
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  if (value > kMost || (value != 0 && !std::has_single_bit(value))) return false;
  *divisions = value;
  return true;
}

constexpr std::string_view kDivisionsAre = " is neither 0 nor a power of two up to 1048576";

// [256:1,512:2,>:8]: sizes in MiB, powers of two. The first also holds for all smaller sizes, ">"
// for all that are larger than the one before it; sizes that are not named are not rounded.
void TakeDivisionsList(const Input& in, Config& config) {
  std::vector<ConfigString::Item> items;
  in.reader.Take(in.key, &items);
  auto& divisions = config.roundup_power2_divisions;
  divisions = {};
  std::size_t next = 0;  // the interval behind the one that was named last
  bool first = true;
  for (const ConfigString::Item& item : items) {
    std::uint32_t value = 0;
    if (item.key.empty()) {
      return in.reader.Reject(in.key, Quote(item.value) + " is not size:divisions, as in 256:4");
    }
    if (!ParseDivisions(item.value, &value)) {
      return in.reader.Reject(in.key, Quote(item.value) + std::string(kDivisionsAre));
    }
    if (item.key == ">") {
      std::fill(divisions.begin() + static_cast<std::ptrdiff_t>(next), divisions.end(), value);
      continue;
    }
    std::uint64_t mebibytes = 0;
    const char* end = item.key.data() + item.key.size();
    const auto [stop, error] = std::from_chars(item.key.data(), end, mebibytes);
    if (error != std::errc() || stop != end || !std::has_single_bit(mebibytes)) {
      return in.reader.Reject(in.key,
                              Quote(item.key) + " is neither a power of two (in MiB) nor '>'");
    }
    const auto exponent = static_cast<std::size_t>(std::countr_zero(mebibytes));
    const std::size_t index = std::min(exponent, divisions.size() - 1);
    if (first) {
      std::fill(divisions.begin(), divisions.begin() + static_cast<std::ptrdiff_t>(index), value);
    }
    divisions[index] = value;
    first = false;
    next = index + 1;
  }
}

void TakeDivisions(const Input& in, Config& config) {
  if (in.entry() != nullptr && in.entry()->is_list) return TakeDivisionsList(in, config);
  std::string text;
  in.reader.Take(in.key, &text);
  if (in.entry() == nullptr) return;
  std::uint32_t value = 0;
  if (!ParseDivisions(text, &value)) {
    return in.reader.Reject(in.key, Quote(text) + std::string(kDivisionsAre));
  }
  config.roundup_power2_divisions.fill(value);
}

std::string FormatDivisions(const Config& config) {
  const auto& divisions = config.roundup_power2_divisions;
  if (std::all_of(divisions.begin(), divisions.end(),
                  [&](std::uint32_t value) { return value == divisions[0]; })) {
    return std::to_string(divisions[0]);
  }
  std::string text;
  for (std::size_t i = 0; i < divisions.size(); ++i) {
    text += (i == 0 ? "[" : ",") + std::to_string(std::uint64_t{1} << i) + ":" +
            std::to_string(divisions[i]);
  }
  return text + "]";
}

// --- All keys ------------------------------------------------------------------------------------

constexpr std::uint64_t kNoMost = kUnlimited.count();

std::vector<Key> MakeKeys() {
  return {
      {"backend", +[] { return std::string("`native` or `passthrough`"); }, TakeBackend,
       +[](const Config& config) {
         return std::string(config.backend == Config::Backend::kNative ? "native" : "passthrough");
       },
       "`native`: Keel's allocator. `passthrough`: each request is a call of the driver, to find "
       "bugs"},
      OnlyNative(Mebibytes<&Config::max_split_size, 20, true>(
          "max_split_size_mb",
          "plain segments: free blocks of this size and more, and of more than "
          "`large_segment_size_mb`, are never split, serve only requests of that size, and go "
          "first when memory is short; expandable segments do not need it, and say so")),
      OnlyNative(Mebibytes<&Config::max_non_split_rounding, 20>(
          "max_non_split_rounding_mb",
          "plain segments: a block that is not split serves requests that it exceeds by less than "
          "this; follows "
          "`large_segment_size_mb` unless given")),
      OnlyNative({"garbage_collection_threshold",
                  +[] { return std::string("0, or above 0 and below 1"); }, TakeThreshold,
                  +[](const Config& config) { return Number(config.garbage_collection_threshold); },
                  "past this part of the limit, free memory is given back, what was not used for "
                  "longest first, before the driver is asked for more; 0: off"}),
      OnlyNative({"roundup_power2_divisions",
                  +[] {
                    return std::string(
                        "0 or a power of two; or `[256:1,512:2,>:8]`, by size in MiB");
                  },
                  TakeDivisions, FormatDivisions,
                  "requests are rounded up to the next of so many steps between two powers of two; "
                  "in a list, the first also holds for smaller sizes and `>` for larger ones; 0 or "
                  "1: no rounding"}),
      OnlyNative(Switch<&Config::expandable_segments>(
          "expandable_segments",
          "one address range per stream and pool, with memory mapped as needed, where the device "
          "has virtual memory")),
      OnlyNative(Mebibytes<&Config::large_segment_size, 11>(
          "large_segment_size_mb",
          "plain segments: what is taken from the driver at once for requests of 1 to 10 MiB; "
          "expandable segments take what a request lacks, and say so")),
      Fraction<&Config::per_process_memory_fraction>(
          "per_process_memory_fraction",
          "how much of the device's memory the allocator may hold; the lower of this and `limit`"),
      Ignored("graph_capture_record_stream_reuse",
              "PyTorch: a block that several streams used is reused inside the capture once these "
              "have joined",
              "the device layer does not tell which streams of a capture have joined; such a block "
              "is kept until the capture ends"),
      Ignored(
          "release_lock_on_cudamalloc",  // vendor-ok: PyTorch's key
          "PyTorch: other threads may allocate during a call of the driver",
          "during a call of the driver Keel holds no lock that a request which finds memory needs"),
      Ignored(
          "release_lock_on_hipmalloc",        // vendor-ok: PyTorch's key
          "as `release_lock_on_cudamalloc`",  // vendor-ok: PyTorch's key
          "during a call of the driver Keel holds no lock that a request which finds memory needs"),
      Ignored("throw_on_cudamalloc_oom",  // vendor-ok: PyTorch's key
              "PyTorch: a request past the limit fails before the driver is called",
              "Keel always checks the limit before it calls the driver, and fails with an error "
              "that says so"),
      Size<&Config::limit, 1, kNoMost>("limit",
                                       "what the allocator of one device may hold, in all"),
      {"debug", +[] { return std::string("`off`, `guards`, `poison` or `full`"); }, TakeDebug,
       FormatDebug,
       "`guards`: finds writes outside a block. `poison`: overwrites contents at allocation and "
       "free, and finds writes after free. `full`, or true: both. Slow, for finding errors"},
      {"history", +[] { return "0 to " + std::to_string(telemetry::EventLog::kMaxCapacity); },
       TakeHistory, +[](const Config& config) { return std::to_string(config.history); },
       "how many of the newest events to keep; 0: none"},
      Switch<&Config::history_stacks>("history_stacks",
                                      "keep the stack of each event; needs `history`"),
      OnlyNative(Size<&Config::front_cache, 0, (1_GiB).count()>(
          "front_cache",
          "free memory that a thread may keep for itself, per stream, of plain segments at most "
          "256 KiB; 0: none")),
      OnlyNative(Size<&Config::handle_size, (4_KiB).count(), (16_GiB).count()>(
          "handle_size",
          "expandable segments: the most physical memory that is mapped at once, for requests over "
          "1 MiB; rounded up to what the device can map")),
      OnlyNative({"upkeep", +[] { return std::string("0 to 1"); }, TakeUpkeep,
                  +[](const Config& config) { return Number(config.upkeep); },
                  "expandable segments: the part of the time that may go into mapping memory in "
                  "finer pieces than `handle_size`, which wastes less; 0: never finer"}),
      Switch<&Config::pinned_use_host_register>(
          "pinned_use_cuda_host_register",  // vendor-ok: PyTorch's key
          "pin ordinary memory by registering it, instead of letting the driver allocate it"),
      Alias<&Config::pinned_use_host_register>(
          "pinned_use_hip_host_register",         // vendor-ok: PyTorch's key
          "as `pinned_use_cuda_host_register`"),  // vendor-ok: PyTorch's key
      {"pinned_num_register_threads", +[] { return std::string("a power of two up to 128"); },
       TakeRegisterThreads,
       +[](const Config& config) { return std::to_string(config.pinned_num_register_threads); },
       "threads that touch the pages of memory before it is registered, if more than 1, or for "
       "`prefault`"},
      Switch<&Config::pinned_use_background_threads>(
          "pinned_use_background_threads",
          "a thread of its own collects pinned memory as soon as its uses are done, so that it is "
          "there when somebody asks"),
      Mebibytes<&Config::pinned_reserve_segment_size, 0>(
          "pinned_reserve_segment_size_mb",
          "pinned memory that is taken in one piece at the first use, for requests of all sizes, "
          "and kept; 0: none"),
      Size<&Config::host_limit, 1, kNoMost>("host_limit", "pinned memory that may be held, in all"),
      Size<&Config::host_cache, 0, kNoMost>(
          "host_cache",
          "up to so much of it is kept for reuse; what is held beyond goes back to the driver when "
          "it is freed; 0: none is kept"),
      Size<&Config::host_background_reserve, 0, (1_TiB).count()>(
          "host_background_reserve",
          "a thread of its own keeps so much pinned memory free for requests of 1 MiB and less, "
          "with "
          "its pages touched, before somebody asks; 0: no thread"),
      {"staging_threshold", +[] { return std::string("a size, unlimited or auto"); },
       TakeStagingThreshold,
       +[](const Config& config) {
         return config.staging_threshold ? Exact(*config.staging_threshold) : std::string("auto");
       },
       "copies from and to pageable memory of this size and more go through pinned memory; auto: "
       "from where that is faster, in either direction"},
      Size<&Config::staging_chunk, (64_KiB).count(), (1_GiB).count()>(
          "staging_chunk", "in pieces of at most this size"),
      Whole<&Config::staging_threads, 0, 256>(
          "staging_threads", "threads that copy between the two; 0: as the machine has them"),
      Size<&Config::staging_pin_limit, 0, kNoMost>(
          "staging_pin_limit",
          "pageable memory of which a copy is staged a second time is pinned instead, up to so "
          "much, "
          "and copied without a buffer from then on; who gives such memory back to the system must "
          "say so before, see below; 0: none"),
      Switch<&Config::prefault>(
          "prefault", "touch the pages of new pinned memory at once, in the thread that asks"),
  };
}

// Leaked: a static allocator may be configured at any time.
const std::vector<Key>& Keys() {
  static const auto* const keys = new std::vector<Key>(MakeKeys());
  return *keys;
}

Result<Config> ReadEnvironment() {
  const char* text = std::getenv("KEEL_ALLOC_CONF");
  KEEL_ASSIGN(Config config, Config::Parse(text == nullptr ? "" : text));
  for (const std::string& warning : config.warnings) {
    Log(LogLevel::kWarn, "KEEL_ALLOC_CONF: " + warning);
  }
  return config;
}

}  // namespace

Result<AllocatorConfig> AllocatorConfig::Parse(std::string_view text, std::string_view source) {
  KEEL_ASSIGN(const ConfigString entries, ConfigString::Parse(source, text));
  ConfigReader reader(entries);
  AllocatorConfig config;
  for (const Key& key : Keys()) key.take({entries, reader, key.name}, config);
  if (entries.Find("max_non_split_rounding_mb") == nullptr) {
    config.max_non_split_rounding = config.large_segment_size;
  }
  if (config.history_stacks && config.history == 0) {
    reader.Reject("history_stacks", "there is no history; give history:100000, for example");
  }
  if (config.pinned_reserve_segment_size > std::min(config.host_limit, config.host_cache)) {
    reader.Reject("pinned_reserve_segment_size_mb",
                  Exact(config.pinned_reserve_segment_size) +
                      " is more than host_limit or host_cache allows to be kept");
  }
  KEEL_TRY(reader.Finish());

  for (const Key& key : Keys()) {
    const ConfigString::Entry* entry = entries.Find(key.name);
    if (entry == nullptr) continue;
    const std::string name(key.name);
    if (!key.no_effect.empty()) {
      config.warnings.push_back(name + " has no effect: " + std::string(key.no_effect));
    } else if (key.only_native && config.backend == Backend::kPassthrough) {
      config.warnings.push_back(name + " has no effect: backend:passthrough has no pools");
    }
  }
  return config;
}

const Result<AllocatorConfig>& AllocatorConfig::FromEnvironment() {
  static const auto* const config = new Result<AllocatorConfig>(ReadEnvironment());
  return *config;
}

std::string AllocatorConfig::ToString() const {
  AllocatorConfig defaults;
  defaults.max_non_split_rounding = large_segment_size;  // as Parse has it
  std::string text;
  for (const Key& key : Keys()) {
    if (key.format == nullptr) continue;
    const std::string value = key.format(*this);
    if (value == key.format(defaults)) continue;
    text += (text.empty() ? "" : ",") + std::string(key.name) + ":" + value;
  }
  return text;
}

std::uint32_t AllocatorConfig::RoundupDivisions(Bytes size) const {
  const std::uint64_t mebibytes = size / 1_MiB;
  const auto exponent = static_cast<std::size_t>(std::bit_width(mebibytes | 1)) - 1;
  return roundup_power2_divisions[std::min(exponent, kRoundupIntervals - 1)];
}

bool operator==(const AllocatorConfig& a, const AllocatorConfig& b) {
  return a.ToString() == b.ToString();
}

std::vector<AllocatorKey> DescribeAllocatorKeys() {
  std::vector<AllocatorKey> descriptions;
  const AllocatorConfig defaults;
  for (const Key& key : Keys()) {
    descriptions.push_back({std::string(key.name), key.values(),
                            key.format == nullptr ? "false" : key.format(defaults), key.meaning,
                            key.no_effect});
  }
  return descriptions;
}

}  // namespace keel::memory
