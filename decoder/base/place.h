// Places of what is written: where it goes to, and how it comes there.
//
// Threading: pure functions.
#pragma once

#include <string>

namespace tailtrace {

// The folder that what is at the path lies in, in words that open() takes.
std::string folder_holding(const std::string& path);

// Whether it is moved; else errno says why: EEXIST where something is there. Not every file system
// can see to it that a file, or an empty folder, stays.
bool move_to_free_place(const std::string& from, const std::string& to);

}  // namespace tailtrace
