// Running a part of a test in a forked child.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

// Whether a forked child may start threads: not with these sanitizers, whose own locks the child
// inherits as they were, held by a thread that it does not have.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define KEEL_TEST_THREADS_AFTER_FORK 0
#else
#define KEEL_TEST_THREADS_AFTER_FORK 1
#endif

namespace keel {

// The exit status of a child that runs `body`; a child that hangs is ended by a signal. Under
// AddressSanitizer it may hang because it inherited the sanitizer's own lock from a thread that was
// just allocating: then there is another child.
template <class Body>
int InForkedChild(Body body) {
#if defined(__SANITIZE_ADDRESS__)
  constexpr int kChildren = 3;
  constexpr unsigned kSeconds = 20;
#else
  constexpr int kChildren = 1;
  constexpr unsigned kSeconds = 60;
#endif
  int status = 0;
  for (int i = 0; i < kChildren; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(kSeconds);
      body();
      // Not exit(): the child must not run the parent's gtest and static objects.
      _exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGALRM) break;
  }
  return status;
}

}  // namespace keel
