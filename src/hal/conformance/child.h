// Running this program again, as a process of its own: for a case that loses its device, and for
// the other side of a case about two processes.
//
// The child is spawned and exec'd, never only forked: the parent has threads. It gets the parent's
// arguments without GoogleTest's flags, plus a filter that selects one test.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace keel::hal::conformance {

// Under which number the child finds the descriptor that it was given.
inline constexpr int kInheritedDescriptor = 100;

struct ChildOptions {
  std::string filter;    // the name of the one test
  std::string argument;  // ChildArgument() in the child
  int descriptor = -1;   // becomes kInheritedDescriptor; -1: none
  std::chrono::seconds limit{90};
};

struct ChildOutcome {
  bool passed = false;   // it ran the test, and the test did not fail
  bool skipped = false;  // the test skipped itself
  std::string problem;   // why it did not pass: "exited with 1", "still running after 90 s", ...
  std::string output;    // what it wrote to standard output and standard error
};

// Remembers the arguments for children. Called once, by Main.
void SetProgramArguments(int argc, char** argv);

ChildOutcome RunChild(const ChildOptions& options);

// In the child: whether this is one, and what it was given.
bool IsChild();
std::string ChildArgument();
// In the child, when its test has run: without this line the parent does not believe that it did.
void ReportChildDone(bool skipped);

}  // namespace keel::hal::conformance
