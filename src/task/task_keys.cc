#include "task/task_keys.h"

namespace keel::task {

void TaskKeys::Grow() {
  free_.push_back(0);  // Release needs no more memory
  turns_.push_back(0);
  free_[free_count_++] = static_cast<std::uint32_t>(turns_.size() - 1);
}

}  // namespace keel::task
