// Files that a folder from anywhere holds: what it names must be its own. A bundle that was sent
// must not make us read elsewhere, by its words or by a link.
//
// Threading: pure functions, but for the look at the disk.
#pragma once

#include <string>
#include <string_view>

#include "decoder/base/result.h"

namespace tailtrace {

// Whether a name that a folder gives to one of its files is relative and has no "..". An empty one
// does.
bool stays_inside(std::string_view name);

// The same on the disk: nothing on the way from `folder` to `name` is a symbolic link. What is not
// there is no error here. REQUIRES: stays_inside(name). Errors: kBadInput.
Result<void> check_own_file(const std::string& folder, std::string_view name);

}  // namespace tailtrace
