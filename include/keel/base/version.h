// The version of Keel. The build reads it from here: this is the only place that states it.
//
// Preprocessor only, so that C may include it too.

#pragma once

#define KEEL_VERSION_MAJOR 0
#define KEEL_VERSION_MINOR 1
#define KEEL_VERSION_PATCH 0

// One number that orders versions: KEEL_VERSION >= KEEL_MAKE_VERSION(0, 1, 0).
#define KEEL_MAKE_VERSION(major, minor, patch) ((major) * 1000000 + (minor) * 1000 + (patch))
#define KEEL_VERSION KEEL_MAKE_VERSION(KEEL_VERSION_MAJOR, KEEL_VERSION_MINOR, KEEL_VERSION_PATCH)

// "0.1.0"
#define KEEL_VERSION_STRINGIFY_(x) #x
#define KEEL_VERSION_JOIN_(a, b, c) \
  KEEL_VERSION_STRINGIFY_(a) "." KEEL_VERSION_STRINGIFY_(b) "." KEEL_VERSION_STRINGIFY_(c)
#define KEEL_VERSION_STRING \
  KEEL_VERSION_JOIN_(KEEL_VERSION_MAJOR, KEEL_VERSION_MINOR, KEEL_VERSION_PATCH)
