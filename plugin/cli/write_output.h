// Files that commands write, by what prints: it throws when it cannot.
//
// Threading: pure functions.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

#include "decoder/base/output_file.h"

namespace tailtrace {

using WriteOutput = std::function<Result<void>(std::FILE*)>;

// Has `write` write an OutputFile. Errors: the OutputFile's, and those of `write`.
Result<void> write_output(const std::string& path, OlderFile older, const WriteOutput& write);

// As fmt::print(), without a copy. Throws std::system_error when it cannot be written.
void put_text(std::FILE* file, std::string_view text);

}  // namespace tailtrace
