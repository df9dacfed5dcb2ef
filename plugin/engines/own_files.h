// Files that belong to us and are loaded by others, found from where we are ourselves.
//
// Threading: free for all.
#pragma once

#include <string>
#include <string_view>

#include "decoder/base/result.h"

namespace tailtrace {

// The path of one: beside the program or library that this code is in, in the build folder, or as
// installed. Errors: kNoEngine, with where it is not.
Result<std::string> find_own_file(std::string_view name);

}  // namespace tailtrace
