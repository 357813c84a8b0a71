// From Status to Python's exceptions, and leaving the interpreter to others meanwhile.
//
// Everything here but WithoutInterpreter, LeaveInterpreter and what is about forks needs the
// interpreter's lock.
#pragma once

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "keel/base/deadline.h"
#include "keel/base/result.h"

namespace keel::python {

namespace nb = nanobind;

// Throws the exception of keel.errors for an error; `report` goes with OutOfMemoryError.
[[noreturn]] void Raise(const Status& status, const std::string& report = {});

inline void Check(const Status& status) {
  if (!status.ok()) Raise(status);
}

template <class T>
T Take(Result<T> result) {
  if (!result.ok()) Raise(result.status());
  return *std::move(result);
}

// Before Python 3.14 a thread that wants the interpreter's lock while the interpreter ends is
// ended, by unwinding its stack, also the frames of a program in C++ that cannot take it. What is
// unwound here is caught at once, and the thread stays where it is, as it does in later versions:
// the process is about to end.
template <class Body>
auto OrStayHere(Body body) {
  try {
    return body();
  } catch (const abi::__forced_unwind&) {
    while (true) pause();
  }
}

// Leaves the interpreter's lock, which this thread has, to others.
class ReleasedLock {
 public:
  ReleasedLock() : state_(PyEval_SaveThread()) {}
  ~ReleasedLock() {
    OrStayHere([this] { PyEval_RestoreThread(state_); });
  }
  ReleasedLock(const ReleasedLock&) = delete;
  ReleasedLock& operator=(const ReleasedLock&) = delete;

 private:
  PyThreadState* const state_;
};

// Other threads of the program run while `work` does, which must not touch Python.
template <class Work>
auto WithoutInterpreter(Work&& work) {
  const ReleasedLock released;
  return std::forward<Work>(work)();
}

// While it lives the interpreter's lock is left to others, if this thread has it: for ends that may
// wait and come with or without it.
class LeaveInterpreter {
 public:
  LeaveInterpreter() {
    if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) released_.emplace();
  }

 private:
  std::optional<ReleasedLock> released_;
};

// Seconds from now; nothing: for ever. ValueError for what is no time.
Deadline DeadlineOf(std::optional<double> seconds);

// `wait` until it ends or the deadline comes, without the interpreter. A signal (an interrupt from
// the keyboard) ends it with its exception.
template <class Wait>
void WaitInterruptibly(Deadline deadline, Wait&& wait) {
  constexpr auto kSlice = std::chrono::milliseconds(100);
  while (true) {
    const Deadline slice = Deadline::After(kSlice);
    const bool last = !deadline.never() && deadline.when() <= slice.when();
    const Status status = WithoutInterpreter([&] { return wait(last ? deadline : slice); });
    if (last || status.code() != StatusCode::kDeadlineExceeded) return Check(status);
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

// A child that was forked after this has a Status of its own for everything; see Raise.
void NoteDeviceUse();
// Whether this is such a child. One relaxed load.
bool ForkedFromUser();

// The deleter of what threads change without the interpreter's lock: such a child leaves its
// parent's as they are, for ever, because a thread may have been in the middle of changing them. It
// has none of its own.
struct DeleteHere {
  template <class T>
  void operator()(T* object) const {
    if (!ForkedFromUser()) delete object;
  }
};
template <class T, class... Arguments>
std::shared_ptr<T> MakeSharedHere(Arguments&&... arguments) {
  return std::shared_ptr<T>(new T(std::forward<Arguments>(arguments)...), DeleteHere());
}

}  // namespace keel::python
