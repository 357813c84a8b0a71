// Reads what a module in textual virtual assembly declares: its entry points and their parameters.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "drivers/standin/standin.h"

namespace keel::standin {

// The .entry functions of `text`, in order; nullopt if it is not such a module: no .version and
// .target at its head, unbalanced braces, or a declaration that cannot be read. Instructions are
// not looked at.
std::optional<std::vector<KernelEntry>> ParseAssembly(std::string_view text);

}  // namespace keel::standin
