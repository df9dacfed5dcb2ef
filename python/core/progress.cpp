#include "python/core/progress.h"

namespace tailtrace::python {

namespace py = pybind11;

namespace {

// What Python has set; None is nobody. Kept until the interpreter's end, for work may outlive it.
PyObject* g_listener = nullptr;

void tell(const char* what, std::uint64_t done, std::uint64_t total) {
  if (g_listener == nullptr || g_listener == Py_None) return;
  py::reinterpret_borrow<py::object>(g_listener)(what, done, total);
}

}  // namespace

void check_signals() {
  py::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

void Progress::look(std::uint64_t done) {
  auto now = std::chrono::steady_clock::now();
  if (now - last_ < kPeriod) return;
  last_ = now;
  told_ = true;
  py::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  tell(what_, done, total_);
}

void Progress::finish() {
  if (!told_) return;
  py::gil_scoped_acquire acquire;
  std::uint64_t all = total_ == 0 ? 1 : total_;
  tell(what_, all, all);
}

void bind_progress(py::module_& module) {
  module.def("set_progress", [](py::object listener) {
    py::object before = g_listener == nullptr ? py::object(py::none())
                                              : py::reinterpret_steal<py::object>(g_listener);
    g_listener = listener.release().ptr();
    return before;
  });
}

}  // namespace tailtrace::python
