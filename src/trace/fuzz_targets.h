// What may never happen, whatever bytes a reader is given: a crash, memory without bound, or a
// snapshot that means something else when it is written and read again. Each function aborts if it
// does. fuzz_main.cc makes a libFuzzer program of each; fuzz_test.cc runs them in every build, on
// the stored corpus and on what becomes of it by small damage.
#pragma once

#include <string_view>

namespace keel::trace {

void FuzzPickle(std::string_view bytes);
void FuzzJson(std::string_view bytes);
void FuzzRmmLog(std::string_view bytes);
void FuzzCompressed(std::string_view bytes);

}  // namespace keel::trace
