#include "python/core/errors.h"

namespace tailtrace::python {

namespace py = pybind11;

py::str to_str(std::string_view text) {
  auto size = static_cast<py::ssize_t>(text.size());
  return py::reinterpret_steal<py::str>(PyUnicode_DecodeUTF8(text.data(), size, "replace"));
}

py::object to_exception(const Error& error) {
  return py::module_::import("tailtrace.errors")
      .attr("from_parts")(static_cast<int>(error.code), to_str(error.what), to_str(error.why),
                          to_str(error.fix), to_str(error.now));
}

void raise(const Error& error) {
  py::object exception = to_exception(error);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw py::error_already_set();
}

}  // namespace tailtrace::python
