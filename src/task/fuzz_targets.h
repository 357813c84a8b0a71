// What may never happen, whatever bytes a reader of this layer is given: a crash, or something that
// is read and is not the same when it is written again. Each function aborts if it does.
// fuzz_main.cc makes a libFuzzer program of each; fuzz_test.cc runs them in every build, on the
// stored corpus and on what becomes of it by small damage.
#pragma once

#include <cstddef>
#include <span>

namespace keel::task {

void FuzzArguments(std::span<const std::byte> bytes);
// Also with the size and the checksum put right: else next to nothing would be read.
void FuzzImage(std::span<const std::byte> bytes);
// What is found in a lane, of each of the three kinds.
void FuzzMessage(std::span<const std::byte> bytes);
// What ranks say beside that. Texts are made printable, so that only what was read once is the same
// when it is written again.
void FuzzLife(std::span<const std::byte> bytes);

}  // namespace keel::task
