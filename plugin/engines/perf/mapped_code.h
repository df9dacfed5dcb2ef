// The bytes of code that a process had mapped from a file, read from the file: for mappings that
// are gone again.
//
// Threading: pure functions; they read files.
#pragma once

#include "decoder/base/bytes.h"
#include "decoder/perf/events.h"

namespace tailtrace::perf {

// What the mapping showed. Empty where there is no such file any more: another one by its name, by
// build id or inode, is not believed. The name is looked up as process `pid` sees files, or saw
// them.
Bytes code_in_file(const MmapEvent& map, std::int32_t pid);

}  // namespace tailtrace::perf
