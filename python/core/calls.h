// Calls: a stretch of a history as segments of functions, for Python.
//
// Threading: immutable once made; names are read under the history's lock.
#pragma once

#include "decoder/history/calls/calls.h"
#include "python/core/thread_history.h"

namespace tailtrace::python {

// Of listings that are one text.
constexpr std::size_t kMaxListing_bytes = 16 << 20;

void bind_calls(pybind11::module_& module);

}  // namespace tailtrace::python
