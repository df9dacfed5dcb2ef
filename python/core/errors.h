// Errors on their way into Python: an Error becomes the exception of its code, part by part.
//
// Threading: the caller holds the interpreter's lock.
#pragma once

#include <pybind11/pybind11.h>

#include <string_view>

#include "decoder/base/result.h"

namespace tailtrace::python {

// Text of the library for Python: names of files and symbols in it need not be UTF-8.
pybind11::str to_str(std::string_view text);

// The exception of tailtrace/errors.py that stands for the error, not thrown.
pybind11::object to_exception(const Error& error);

// Throws what pybind11 turns into the exception that tailtrace/errors.py has for the code.
[[noreturn]] void raise(const Error& error);

template <class T>
T unwrap(Result<T>&& result) {
  if (!result) raise(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace tailtrace::python
