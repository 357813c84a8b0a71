// A stand-in for the CUDA driver library, for tests: its entry points on the simulated device.

#define KEEL_STANDIN_ENTRY(name) cu##name
#define KEEL_STANDIN_VENDOR "CUDA"

#include "drivers/standin/context_exports.inc"
#include "drivers/standin/context_work_exports.inc"
