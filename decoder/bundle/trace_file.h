// A file of raw trace, as LLDB's bundles have them.
//
// Threading: a pure function.
#pragma once

#include <string>

#include "decoder/base/file.h"

namespace tailtrace {

// Like MappedFile::open, but an empty file is an empty trace.
Result<MappedFile> open_trace(const std::string& path);

}  // namespace tailtrace
