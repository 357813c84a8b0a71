// Quote: foreign text inside a message. Configuration comes from the environment and may hold
// anything; a message must stay one readable line whatever that was.
#pragma once

#include <string>
#include <string_view>

namespace keel {

// 'text', with bytes that are not printable ASCII written \xNN, and cut after 64 characters.
std::string Quote(std::string_view text);

// Without the spaces, tabs and line ends at both ends.
std::string_view Trim(std::string_view text);

// ASCII letters only, whatever the locale.
std::string Lower(std::string_view text);

}  // namespace keel
