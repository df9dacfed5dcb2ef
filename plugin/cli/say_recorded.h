// How to look at what was kept, as a line for a shell.
//
// Threading: pure functions.
#pragma once

#include <cstdio>
#include <string>

namespace tailtrace {

// "recorded: tailtrace history DIR", on `err`.
void say_recorded(const std::string& path, std::FILE* err);

}  // namespace tailtrace
