// What the program that we are loaded into calls in other libraries, and how to be called instead.
//
// Threading: before the program has a second thread.
#pragma once

#include <string_view>

namespace tailtrace {

// From now on `instead` is called wherever the program itself (not a library of it) calls the
// function `name` of a library. False: it does not call it, or its table cannot be written.
// Source: System V ABI, AMD64 supplement, "Relocation".
bool replace_import(std::string_view name, void* instead);

}  // namespace tailtrace
