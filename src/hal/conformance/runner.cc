#include "hal/conformance/runner.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "hal/conformance/child.h"
#include "hal/conformance/context.h"
#include "keel/base/mutex.h"

namespace keel::hal::conformance {
namespace {

// No case takes a hundredth of it; a case that waits for ever must not hang the whole run.
constexpr std::chrono::seconds kCaseLimit{120};

struct NamedCapability {
  bool Capabilities::* member;
  const char* name;
};
constexpr NamedCapability kCapabilities[] = {
    {&Capabilities::virtual_memory, "virtual_memory"},
    {&Capabilities::exportable_memory, "exportable_memory"},
    {&Capabilities::rdma_memory, "rdma_memory"},
    {&Capabilities::host_registration, "host_registration"},
    {&Capabilities::unified_addresses, "unified_addresses"},
    {&Capabilities::kernels, "kernels"},
    {&Capabilities::orchestration, "orchestration"},
    {&Capabilities::host_calls, "host_calls"},
    {&Capabilities::value_writes, "value_writes"},
    {&Capabilities::value_waits, "value_waits"},
    {&Capabilities::event_timing, "event_timing"},
    {&Capabilities::graphs, "graphs"},
    {&Capabilities::graph_update, "graph_update"},
    {&Capabilities::node_update, "node_update"},
};

const Listed* FindListed(const std::vector<Listed>& list, const std::string& name) {
  const auto found = std::find_if(list.begin(), list.end(),
                                  [&](const Listed& entry) { return entry.name == name; });
  return found == list.end() ? nullptr : &*found;
}

std::string JoinNames(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// Ends the process, with the name of the case, when a case takes too long. There is no other way
// out of a primitive that never returns.
class Watchdog {
 public:
  explicit Watchdog(std::string name) : thread_([this, name = std::move(name)] { Watch(name); }) {}
  ~Watchdog() {
    {
      const MutexLock lock(mutex_);
      done_ = true;
    }
    changed_.NotifyAll();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void Watch(const std::string& name) {
    const auto limit = std::chrono::steady_clock::now() + kCaseLimit;
    const MutexLock lock(mutex_);
    while (!done_) {
      if (!changed_.WaitUntil(mutex_, limit) && !done_) {
        std::fprintf(stderr, "conformance: %s is still running after %d s\n", name.c_str(),
                     static_cast<int>(kCaseLimit.count()));
        std::abort();
      }
    }
  }

  Mutex mutex_;
  CondVar changed_;
  bool done_ KEEL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

void RunHere(const Case& test, const Join& join) {
  const Watchdog watchdog(test.FullName());
  auto context = CaseContext::Create(test, join);
  ASSERT_OK(context);
  test.body(**context);
  (*context)->Finish();
}

void RunInOwnProcess(const Case& test, const Join& join) {
  const ChildOutcome outcome = RunChild({.filter = join.driver + "/" + test.FullName()});
  if (!outcome.passed) {
    FAIL() << "the process of its own " << outcome.problem << "; it wrote:\n" << outcome.output;
  }
  if (outcome.skipped) GTEST_SKIP() << "in a process of its own, which wrote:\n" << outcome.output;
}

void RunBody(const Case& test, const Join& join) {
  if (test.traits.loses_device && !IsChild()) {
    RunInOwnProcess(test, join);
  } else {
    RunHere(test, join);
  }
}

// What went wrong when the case ran; empty when nothing did.
std::vector<std::string> FailuresOf(const Case& test, const Join& join) {
  testing::TestPartResultArray results;
  {
    const testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &results);
    RunBody(test, join);
  }
  std::vector<std::string> failures;
  for (int i = 0; i < results.size(); ++i) {
    if (results.GetTestPartResult(i).failed()) {
      failures.emplace_back(results.GetTestPartResult(i).message());
    }
  }
  return failures;
}

void MustFail(const Case& test, const Join& join, const char* list, const std::string& reason) {
  const std::vector<std::string> failures = FailuresOf(test, join);
  if (failures.empty()) {
    FAIL() << test.FullName() << " is in ." << list << " (" << reason
           << ") but passes: remove it from the list";
  }
  std::printf("fails, as .%s says (%s): %s\n", list, reason.c_str(), failures.front().c_str());
}

class ConformanceTest : public testing::Test {
 public:
  ConformanceTest(const Case& test, const Join& join, const Capabilities& capabilities)
      : test_(test), join_(join), capabilities_(capabilities) {}

 private:
  void TestBody() override {
    RunCase(test_, join_, capabilities_);
    if (IsChild()) ReportChildDone(IsSkipped());
  }

  const Case& test_;
  const Join& join_;
  const Capabilities& capabilities_;
};

int Refuse(const std::string& problem) {
  std::fprintf(stderr, "conformance: %s\n", problem.c_str());
  return 2;
}

}  // namespace

std::vector<Case>& RegisteredCases() {
  static std::vector<Case>* cases = new std::vector<Case>;
  return *cases;
}

const std::vector<bool Capabilities::*>& AllCapabilities() {
  static const std::vector<bool Capabilities::*> all = [] {
    std::vector<bool Capabilities::*> members;
    for (const NamedCapability& capability : kCapabilities) members.push_back(capability.member);
    return members;
  }();
  return all;
}

std::string CapabilityName(bool Capabilities::* member) {
  for (const NamedCapability& capability : kCapabilities) {
    if (capability.member == member) return capability.name;
  }
  return "?";
}

std::vector<std::string> CheckJoin(const Join& join, const std::vector<Case>& cases) {
  std::vector<std::string> problems;
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (join.driver.empty() || !std::all_of(join.driver.begin(), join.driver.end(), plain)) {
    problems.push_back("the driver's name '" + join.driver +
                       "' is not made of lower case letters, digits and '_'");
  }
  if (join.open == nullptr) problems.emplace_back(".open is missing");
  if (join.devices < 1) problems.emplace_back(".devices must be at least 1");
  if ((join.hold == nullptr) != (join.release == nullptr)) {
    problems.emplace_back(".hold and .release come together");
  }
  std::set<std::string> names;
  for (const Case& test : cases) {
    if (!names.insert(test.FullName()).second) {
      problems.push_back("two cases have the name " + test.FullName());
    }
  }
  const auto check = [&](const char* list, const std::vector<Listed>& entries) {
    std::set<std::string> seen;
    for (const Listed& entry : entries) {
      const std::string where = std::string(".") + list + ": '" + entry.name + "' ";
      if (!names.contains(entry.name)) problems.push_back(where + "names no case");
      if (entry.reason.empty()) problems.push_back(where + "has no reason");
      if (!seen.insert(entry.name).second) problems.push_back(where + "is listed twice");
    }
  };
  check("unsupported", join.unsupported);
  check("expected_failures", join.expected_failures);
  for (const Listed& entry : join.unsupported) {
    if (FindListed(join.expected_failures, entry.name) != nullptr) {
      problems.push_back("'" + entry.name + "' is both unsupported and an expected failure");
    }
  }
  return problems;
}

std::vector<std::string> MissingNeeds(const Case& test, const Join& join,
                                      const Capabilities& capabilities) {
  std::vector<std::string> missing;
  for (bool Capabilities::* member : test.traits.needs) {
    if (!(capabilities.*member)) missing.push_back(CapabilityName(member));
  }
  if (test.traits.blocks && !capabilities.kernels && join.hold == nullptr) {
    missing.emplace_back("kernels (or .hold)");
  }
  return missing;
}

void RunCase(const Case& test, const Join& join, const Capabilities& capabilities) {
  const std::string name = test.FullName();
  if (IsChild()) {  // the parent looked at the lists
    RunBody(test, join);
    return;
  }
  const std::vector<std::string> missing = MissingNeeds(test, join, capabilities);
  if (const Listed* listed = FindListed(join.unsupported, name)) {
    if (!missing.empty()) {
      GTEST_SKIP() << "unsupported: " << listed->reason << " (no " << JoinNames(missing) << ")";
    }
    if (!test.traits.needs.empty() || test.traits.blocks) {
      FAIL() << name << " is in .unsupported (" << listed->reason
             << ") but the device has what it needs: remove it from the list";
    }
    MustFail(test, join, "unsupported", listed->reason);
    return;
  }
  if (!missing.empty()) {
    FAIL() << "the device has no " << JoinNames(missing) << ". If it cannot have that, add {\""
           << name << "\", \"<reason>\"} to .unsupported";
  }
  if (test.traits.devices > join.devices) {
    GTEST_SKIP() << "needs " << test.traits.devices << " devices; there are " << join.devices;
  }
  if (test.traits.stale_handles && !join.detects_stale_handles) {
    GTEST_SKIP() << "the driver does not always detect handles that are not valid";
  }
  if (test.traits.kernel_arguments && !join.checks_kernel_arguments) {
    GTEST_SKIP() << "the driver does not check the arguments of kernels";
  }
  if (const Listed* listed = FindListed(join.expected_failures, name)) {
    MustFail(test, join, "expected_failures", listed->reason);
    return;
  }
  RunBody(test, join);
}

int Main(int argc, char** argv, const Join& join) {
  SetProgramArguments(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (join.flag.empty() || !std::string_view(argv[i]).starts_with(join.flag)) {
      return Refuse(std::string("unknown argument ") + argv[i]);
    }
  }
  const std::vector<Case>& cases = RegisteredCases();
  const std::vector<std::string> problems = CheckJoin(join, cases);
  for (const std::string& problem : problems) (void)Refuse(problem);
  if (!problems.empty()) return 2;

  // Looked at once: every case is judged by the same capabilities.
  Capabilities capabilities;
  if (!IsChild() && !testing::GTEST_FLAG(list_tests)) {
    const auto opened = join.open(1);
    if (!opened.ok()) return Refuse("no device: " + opened.status().ToString());
    if (opened->empty()) return Refuse("no device: .open(1) returned none");
    capabilities = opened->front()->capabilities();
  }

  for (const Case& test : cases) {
    if (test.traits.helper && !IsChild()) continue;
    testing::RegisterTest((join.driver + "/" + test.group).c_str(), test.name.c_str(), nullptr,
                          nullptr, test.file, test.line,
                          [&test, &join, &capabilities]() -> ConformanceTest* {
                            return new ConformanceTest(test, join, capabilities);
                          });
  }
  return RUN_ALL_TESTS();
}

OpenDevices OpenFrom(Driver& driver) {
  return [&driver](int count) -> Result<std::vector<std::shared_ptr<Device>>> {
    std::vector<std::shared_ptr<Device>> devices;
    for (int i = 0; i < count; ++i) {
      KEEL_ASSIGN(std::shared_ptr<Device> device, driver.Open(i));
      devices.push_back(std::move(device));
    }
    return devices;
  };
}

}  // namespace keel::hal::conformance
