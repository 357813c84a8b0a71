// How `keel bench` measures: cases, each of which gives one measurement or several.
//
// A case knows nothing of terminals and of the command line; whoever has a device can run one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "keel/base/bytes.h"
#include "keel/base/result.h"
#include "keel/hal/device.h"
#include "keel/memory/allocator_config.h"

namespace keel::cli {

struct Measurement {
  enum class Unit : std::uint8_t { kNanoseconds, kGigabytesPerSecond, kRatio, kCalls };
  std::string name;                   // of what was measured; stable
  nlohmann::ordered_json parameters;  // an object
  Unit unit = Unit::kNanoseconds;
  double value = 0;
};

struct BenchCase {
  std::string title;
  std::function<Result<std::vector<Measurement>>()> run;
};

// What a case works on.
struct BenchSetting {
  std::shared_ptr<hal::Device> device;
  memory::AllocatorConfig config;
};

// Of the device allocator: pairs of Allocate and Free, in nanoseconds per pair.
std::vector<BenchCase> AllocCases(const BenchSetting& setting);
// Of pinned host memory: pairs, and what is held over what was asked for.
std::vector<BenchCase> HostCases(const BenchSetting& setting);
// Of copies between pageable memory and the device: the device's own and staged ones.
std::vector<BenchCase> CopyCases(const BenchSetting& setting);
// Of what the policies of graphs are made of, as `auto` reckons with it.
std::vector<BenchCase> PrimitiveCases(const BenchSetting& setting);
// Of a training step with memory of several kinds: its time, and the memory calls that it makes.
std::vector<BenchCase> TrainCases(const BenchSetting& setting);

// How long one operation takes, in nanoseconds: the median of several rounds, each long enough for
// the clock. `body` does `count` operations. The first calls find out how many those should be, and
// warm up.
Result<double> MedianNs(const std::function<Status(std::uint64_t count)>& body);

// Of several ways to do the same: in turns, so that what disturbs the machine disturbs all of them.
Result<std::vector<double>> MediansNs(
    const std::vector<std::function<Status(std::uint64_t count)>>& bodies, int turns = 7);

// What a way costs, and how many times as much as another one.
struct Compared {
  double ns = 0;
  double base_ns = 0;
  double ratio = 0;
};
// Of several ways, each next to `base` in every turn. The ratio is the median of those of the
// turns, and not that of the medians: a machine that is faster in some turns than in others changes
// both sides of each.
Result<std::vector<Compared>> CompareNs(
    const std::function<Status(std::uint64_t count)>& base,
    const std::vector<std::function<Status(std::uint64_t count)>>& bodies, int turns = 7);

// The middle one; `values` must not be empty.
double Median(std::vector<double> values);

}  // namespace keel::cli
