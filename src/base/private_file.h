// A file in memory, without a name in any folder, that no other user can open: neither through
// /proc nor by a descriptor that was passed on and opened again.
#pragma once

#include "keel/base/result.h"
#include "keel/base/unique_fd.h"

namespace keel {

// `name` is what /proc shows; `flags` are those of memfd_create. Mode 0600.
Result<UniqueFd> CreatePrivateFile(const char* name, unsigned flags);

// Whether a file has all of these seals. A file that cannot have seals has none.
bool IsSealed(const UniqueFd& file, int seals);

}  // namespace keel
