// Columns for other programs' tables: the Arrow C data interface, handed over as PyCapsules, so
// that whoever knows the interface takes the columns without copying them.
//
// Each column keeps its memory until its taker lets go of it, on whatever thread.
//
// Threading: the caller holds the interpreter's lock.
#pragma once

#include <pybind11/pybind11.h>

namespace tailtrace::python {

void bind_arrow(pybind11::module_& module);

}  // namespace tailtrace::python
