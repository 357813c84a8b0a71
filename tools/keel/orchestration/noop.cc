// A callable that launches nothing: what a task costs beside its work. Takes any arguments.
#include "keel/hal/orchestration.h"

extern "C" [[gnu::visibility("default")]] int keel_orchestrate(keel::hal::OrchestrationCall*) {
  return 0;
}
