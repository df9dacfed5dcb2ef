// Demangled names of functions: of C++ (Itanium C++ ABI), Rust (rust_name.h) and modules of
// Fortran.
//
// Threading: pure functions.
#pragma once

#include <string>

namespace tailtrace {

// As "Worker::step(int)" for "_ZN6Worker4stepEi", without the type it returns; the name itself when
// it is not mangled, or is mangled in a way that might unfold into something enormous.
std::string demangle(const std::string& name);

}  // namespace tailtrace
