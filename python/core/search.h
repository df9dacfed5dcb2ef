// Searching a history for places: addresses, functions, source lines.
//
// Threading: each search has a cursor of its own and works without the interpreter's lock, but for
// names, which are read under the history's.
#pragma once

#include <pybind11/pybind11.h>

namespace tailtrace::python {

void bind_search(pybind11::module_& module);

}  // namespace tailtrace::python
