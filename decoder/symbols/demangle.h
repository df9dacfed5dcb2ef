// Demangled names of C++ functions (Itanium C++ ABI).
//
// Threading: pure functions.
#pragma once

#include <string>

namespace tailtrace {

// "Worker::step(int)" for "_ZN6Worker4stepEi", without the type it returns; the name itself when it
// is not mangled, or is mangled in a way that might unfold into something enormous.
std::string demangle(const std::string& name);

}  // namespace tailtrace
