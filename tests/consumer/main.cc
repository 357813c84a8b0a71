// A program outside this tree: it knows only the installed headers and keel::keel.

#include <cstdio>

#include "keel/base/version.h"

static_assert(KEEL_VERSION ==
              KEEL_MAKE_VERSION(KEEL_VERSION_MAJOR, KEEL_VERSION_MINOR, KEEL_VERSION_PATCH));

int main() {
  std::printf("keel %s\n", KEEL_VERSION_STRING);
  return 0;
}
