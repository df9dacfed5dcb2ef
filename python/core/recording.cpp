#include "python/core/recording.h"

#include <poll.h>
#include <pybind11/stl.h>

#include <cmath>

#include "plugin/engines/qemu/qemu_process.h"
#include "plugin/server/lldb_clock.h"
#include "python/core/errors.h"
#include "python/core/thread_history.h"

namespace tailtrace::python {

namespace py = pybind11;

namespace {

// Waits for the program's end; Ctrl-C ends the waiting, and with it the program.
int wait_for_end(QemuProcess& process) {
  py::gil_scoped_release release;
  constexpr int kPatience_ms = 50;
  for (;;) {
    Result<std::optional<int>> status = process.try_wait();
    if (!status) {
      py::gil_scoped_acquire acquire;
      raise(status.error());
    }
    if (*status) return **status;
    pollfd end{process.end_fd(), POLLIN, 0};
    ::poll(&end, 1, kPatience_ms);
    check_signals();
  }
}

// The threads of what the program did, and its wait status.
py::tuple record(std::vector<std::string> program, std::uint64_t ring_records) {
  QemuOptions options;
  options.program = std::move(program);
  options.ring_records = ring_records;
  Result<QemuProcess> launched = [&] {
    py::gil_scoped_release release;
    return QemuProcess::launch(options);
  }();
  auto process = std::make_shared<QemuProcess>(unwrap(std::move(launched)));
  int status = wait_for_end(*process);
  std::string session = process->session();
  py::list threads;
  for (ThreadSource& source : unwrap(open_sources(session, {}))) {
    source.keep = process;  // the folder goes away with it
    threads.append(py::cast(std::make_shared<ThreadHistory>(std::move(source))));
  }
  return py::make_tuple(session, threads, status);
}

}  // namespace

void bind_recording(py::module_& module) {
  module.def("record", &record);
  module.def("ticks_per_second", [] {
    py::gil_scoped_release release;
    const perf::TimeConversion clock = LldbClock().conversion();
    return static_cast<std::uint64_t>(1e9 * std::exp2(clock.shift) / clock.mult);
  });
}

}  // namespace tailtrace::python
