// Recording a process that runs already, with the processor's own tracing, from Python.
//
// Threading: the waiting is done without the interpreter's lock.
#pragma once

#include <pybind11/pybind11.h>

namespace tailtrace::python {

void bind_attach(pybind11::module_& module);

}  // namespace tailtrace::python
