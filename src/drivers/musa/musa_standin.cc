// A stand-in for the MUSA driver library, for tests: its entry points on the simulated device, in
// the versions that MUSA has of them.

#define KEEL_STANDIN_ENTRY(name) mu##name
#define KEEL_STANDIN_VENDOR "MUSA"
#define KEEL_STANDIN_FIRST_VERSIONS

#include "drivers/standin/context_exports.inc"
#include "drivers/standin/context_work_exports.inc"
