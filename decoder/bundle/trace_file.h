// A file of raw trace, as LLDB's bundles have them, and files that a user names to decode one.
//
// Threading: pure functions.
#pragma once

#include <string>

#include "decoder/base/file.h"

namespace tailtrace {

// Like MappedFile::open, but an empty file is an empty trace.
Result<MappedFile> open_trace(const std::string& path);

// The same of what a user names, which may be a pipe: that is read to its end first.
Result<MappedFile> open_named_file(const std::string& path);

}  // namespace tailtrace
