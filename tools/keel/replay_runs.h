// What the commands that replay a history share: their options, and carrying them out.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "keel/base/result.h"
#include "keel/hal/device.h"
#include "keel/memory/allocator_config.h"
#include "keel/trace/replay.h"
#include "keel/trace/snapshot.h"
#include "keel/trace/summary.h"
#include "progress.h"
#include "replay_report.h"

namespace keel::cli {

// --conf, --memory, --lag and --recorded-device, as they were given.
struct ReplayChoice {
  std::vector<std::string> confs;
  std::string memory;  // empty: the default, if the device is made for this
  std::string lag = "0";
  std::string recorded_device;  // empty: the one with most events
};

void AddHistoryFile(CLI::App& app, std::string& file);
// `fallback` says what happens without it.
void AddConfOption(CLI::App& app, ReplayChoice& choice, const std::string& fallback);
// The other three.
void AddReplayOptions(CLI::App& app, ReplayChoice& choice);

struct Configuration {
  std::string text;
  memory::AllocatorConfig config;
};

// One, the defaults, if there is no text. kInvalidArgument names what is wrong in which.
Result<std::vector<Configuration>> ParseConfigurations(const std::vector<std::string>& texts);
// About keys without effect, on standard error.
void PrintWarnings(std::string_view command, const std::vector<Configuration>& configurations);
// Of the titles that a Progress shows for these, and for "Reading".
std::size_t TitleWidth(const std::vector<Configuration>& configurations);

// A simulated one, with --memory.
Result<std::shared_ptr<hal::Device>> CreateReplayDevice(const ReplayChoice& choice);

// Of the device of the recording that is replayed. kInvalidArgument: there are no events;
// kNotFound lists the devices that have some. Both name the file.
Result<trace::DeviceSummary> ChooseRecorded(const std::string& file, const ReplayChoice& choice,
                                            const std::vector<trace::DeviceSummary>& summaries);

// One after the other; each is a step of `progress`. The configuration and the progress of
// `options` are set here.
Result<std::vector<ReplayRow>> RunReplays(const trace::Snapshot& snapshot,
                                          const trace::DeviceSummary& recorded,
                                          const std::shared_ptr<hal::Device>& device,
                                          const std::vector<Configuration>& configurations,
                                          trace::ReplayOptions options, Progress& progress);

}  // namespace keel::cli
