// Calls: a stretch of a history as segments of functions, for Python.
//
// Threading: immutable once made; names are read under the history's lock.
#pragma once

#include "decoder/history/calls/calls.h"
#include "python/core/thread_history.h"

namespace tailtrace::python {

void bind_calls(pybind11::module_& module);

}  // namespace tailtrace::python
