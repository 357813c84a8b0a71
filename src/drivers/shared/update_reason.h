// Why an instantiated graph could not be updated, in words.
#pragma once

#include <string>

namespace keel::vendor {

// Of the number that every library gives with its refusal; they are the same everywhere.
std::string UpdateReason(int result);

}  // namespace keel::vendor
