#include "python/core/recording.h"

#include <poll.h>
#include <pybind11/stl.h>
#include <x86intrin.h>

#include <chrono>
#include <thread>

#include "plugin/engines/qemu/qemu_process.h"
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

struct Moment {
  std::uint64_t ticks;
  std::chrono::steady_clock::time_point time;
};

// Both counters at once: a look that was interrupted in between is taken again.
Moment look_at_clocks() {
  constexpr std::uint64_t kMost_ticks = 2000;  // of an undisturbed look
  Moment moment{};
  for (int i = 0; i < 100; ++i) {
    moment = {__rdtsc(), std::chrono::steady_clock::now()};
    if (__rdtsc() - moment.ticks < kMost_ticks) break;
  }
  return moment;
}

double ticks_per_second() {
  const Moment before = look_at_clocks();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const Moment after = look_at_clocks();
  return static_cast<double>(after.ticks - before.ticks) /
         std::chrono::duration<double>(after.time - before.time).count();
}

}  // namespace

void bind_recording(py::module_& module) {
  module.def("record", &record);
  module.def("ticks_per_second", &ticks_per_second, py::call_guard<py::gil_scoped_release>());
}

}  // namespace tailtrace::python
