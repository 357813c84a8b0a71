// What the kernel says about the threads of this process.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace keel {

// One letter for each thread but the calling one: "S" for asleep, "R" for running.
inline std::string StatesOfOthers() {
  std::string states;
  const std::string own = std::to_string(gettid());
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == own) continue;
    std::ifstream file(task.path() / "stat");
    std::string text;
    std::getline(file, text);
    const std::size_t name_end = text.rfind(')');
    if (name_end != std::string::npos) states += text.at(name_end + 2);
  }
  return states;
}

}  // namespace keel
