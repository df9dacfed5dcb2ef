#include "python/core/buffer.h"

namespace tailtrace::python {

namespace py = pybind11;

py::buffer_info Buffer::info() const {
  // An empty buffer has an address too: consumers take a null pointer for an error.
  static const std::uint64_t kNothing = 0;
  const void* data = data_ == nullptr ? &kNothing : data_;
  auto item = static_cast<py::ssize_t>(item_size_bytes_);
  return py::buffer_info(const_cast<void*>(data), item, format_, 1,
                         {static_cast<py::ssize_t>(count_)}, {item}, true);
}

void bind_buffer(py::module_& module) {
  py::class_<Buffer>(module, "Buffer", py::buffer_protocol(),
                     "Memory that is read in place, through the buffer protocol.")
      .def_buffer([](Buffer& buffer) { return buffer.info(); })
      .def("__len__", &Buffer::count);
}

}  // namespace tailtrace::python
