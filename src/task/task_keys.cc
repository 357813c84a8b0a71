#include "task/task_keys.h"

namespace keel::task {

void TaskKeys::Grow() {
  turns_.push_back(0);
  // Release needs no more memory.
  free_.reserve(turns_.capacity());
  free_.push_back(static_cast<std::uint32_t>(turns_.size() - 1));
}

}  // namespace keel::task
