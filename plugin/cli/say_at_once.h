// Lines on a stream for whoever reads them, and for nobody else: where a pipe is full, or a
// terminal is held, they are left out, so that whoever says something never waits for a reader.
//
// Threading: one thread at a time for a stream.
#pragma once

#include <cstdio>
#include <string_view>

namespace tailtrace {

// Of a long line, its beginning.
void say_at_once(std::FILE* out, std::string_view line);

}  // namespace tailtrace
