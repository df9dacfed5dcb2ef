// Running a program that the processor records, from its first instruction to its end.
#include <pybind11/stl.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <future>

#include "plugin/engines/qemu/program_check.h"
#include "plugin/provider/followed_program.h"
#include "plugin/provider/trace_provider.h"
#include "python/core/errors.h"
#include "python/core/live_source.h"
#include "python/core/recording.h"
#include "python/core/thread_history.h"

namespace tailtrace::python {

namespace py = pybind11;

namespace {

struct Recorded {
  std::vector<ThreadSource> threads;
  std::vector<Error> remarks;
  int status = 0;
};

// In a thread that is the program's tracer. `pid` gets the program's as long as it is there.
Result<Recorded> record_thread(std::vector<std::string> words, perf::Hardware hardware,
                               std::uint64_t ring_records, std::atomic<pid_t>& pid) {
  if (auto ok = check_ring_capacity(ring_records); !ok) return fail(std::move(ok.error()));
  if (auto runnable = find_program(words); !runnable) return fail(std::move(runnable.error()));
  auto path = find_in_path(words.front());
  if (!path) return fail(std::move(path.error()));
  words.front() = std::move(*path);
  auto program = FollowedProgram::start(words.front(), words);
  if (!program) return fail(std::move(program.error()));
  perf::PerfConfig config;
  config.records.ring_records = ring_records;
  TraceProvider provider(perf::real_kernel(), hardware, config);
  if (auto ok = provider.start({program->pid(), program->pid()}); !ok)
    return fail(std::move(ok.error()));
  pid = program->pid();
  Recorded recorded;
  FollowedProgram::Watcher watcher;
  watcher.begins = [&](ThreadId thread) {
    if (auto ok = provider.start(thread); !ok) recorded.remarks.push_back(std::move(ok.error()));
  };
  watcher.ends = [&](ThreadId thread, Address pc) {
    auto taken = provider.snapshot(thread, pc, ring_records);
    if (taken)
      recorded.threads.push_back(live_source(std::move(*taken)));
    else
      recorded.remarks.push_back(std::move(taken.error()));
    (void)provider.stop(thread).has_value();  // its buffer is needed
  };
  auto status = program->follow(watcher);
  pid = 0;
  if (!status) return fail(std::move(status.error()));
  recorded.status = *status;
  for (Error& remark : provider.take_remarks()) recorded.remarks.push_back(std::move(remark));
  return recorded;
}

// Ctrl-C ends the program, and then the waiting.
void wait_for_end(const std::future<Result<Recorded>>& done, const std::atomic<pid_t>& pid) {
  constexpr std::chrono::milliseconds kPatience(50);
  const auto wait = [&] { return done.wait_for(kPatience) == std::future_status::ready; };
  try {
    while (!wait()) check_signals();
  } catch (...) {
    do {
      if (const pid_t running = pid; running > 0) ::kill(running, SIGKILL);
    } while (!wait());
    throw;
  }
}

// The threads of what the program did, its wait status, and what turned out otherwise than asked.
py::tuple record_by_hardware(std::vector<std::string> words, const std::string& engine,
                             std::uint64_t ring_records) {
  const auto hardware = unwrap(parse_hardware(engine)).value_or(perf::Hardware::kPt);
  auto pid = std::make_shared<std::atomic<pid_t>>(0);
  std::future<Result<Recorded>> done;
  auto work = [words = std::move(words), hardware, ring_records, pid] {
    return record_thread(words, hardware, ring_records, *pid);
  };
  {
    py::gil_scoped_release release;
    done = std::async(std::launch::async, std::move(work));
    wait_for_end(done, *pid);
  }
  Recorded recorded = unwrap(done.get());
  py::list threads, remarks;
  for (ThreadSource& source : recorded.threads)
    threads.append(py::cast(std::make_shared<ThreadHistory>(std::move(source))));
  for (const Error& remark : recorded.remarks) remarks.append(to_exception(remark));
  return py::make_tuple(threads, recorded.status, remarks);
}

}  // namespace

void bind_hardware_recording(py::module_& module) {
  module.def("record_by_hardware", &record_by_hardware);
}

}  // namespace tailtrace::python
