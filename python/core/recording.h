// Running a program and recording it, from Python.
//
// Threading: the waiting is done without the interpreter's lock.
#pragma once

#include <pybind11/pybind11.h>

namespace tailtrace::python {

void bind_recording(pybind11::module_& module);
void bind_hardware_recording(pybind11::module_& module);

}  // namespace tailtrace::python
