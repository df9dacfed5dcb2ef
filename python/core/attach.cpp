#include "python/core/attach.h"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include "decoder/base/file.h"
#include "decoder/symbols/generated_files.h"
#include "plugin/engines/tasks.h"
#include "plugin/provider/trace_provider.h"
#include "python/core/errors.h"
#include "python/core/standing_process.h"
#include "python/core/thread_history.h"

namespace tailtrace::python {

namespace py = pybind11;

namespace {

constexpr std::size_t kMaxMaps_bytes = 16 << 20;

std::string maps_of(std::int32_t pid) {
  auto maps = read_file(fmt::format("/proc/{}/maps", pid), kMaxMaps_bytes);
  return maps ? std::string(as_text(*maps)) : std::string();
}

std::shared_ptr<ThreadHistory> history_of(ThreadSnapshot&& taken, const std::string& maps) {
  auto shared = std::make_shared<const ThreadSnapshot>(std::move(taken));
  ThreadSource source;
  source.thread = shared->thread;
  source.engine = shared->engine;
  source.name = name_of("", shared->thread);
  source.records = [shared]() -> Result<RecordSpan> {
    return RecordSpan{shared, shared->records, shared->first};
  };
  source.content = [shared, maps]() -> Result<OpenedThread> {
    return opened_thread({shared, maps, {}, perf_map_of(shared->thread.pid)});
  };
  return std::make_shared<ThreadHistory>(std::move(source));
}

// A process that is being recorded.
class Attachment {
  // One Python thread at a time, without the interpreter's lock.
  template <class Work>
  auto alone(Work work) {
    py::gil_scoped_release release;
    std::lock_guard lock(mutex_);
    return work();
  }

 public:
  Attachment(std::int32_t pid, const std::string& engine, std::uint64_t ring_records)
      : pid_(pid), provider_(make(engine, ring_records)) {
    unwrap(alone([&] { return provider_.start_process(pid_); }));
  }

  ThreadHistories snapshot(std::uint64_t limit) {
    return unwrap(alone([&] { return take(limit); }));
  }

  std::shared_ptr<ThreadHistory> snapshot_thread(std::int32_t tid, std::uint64_t limit) {
    return unwrap(alone([&]() -> Result<std::shared_ptr<ThreadHistory>> {
      auto taken = provider_.snapshot({pid_, tid}, std::nullopt, limit);
      if (!taken) return fail(std::move(taken.error()));
      return history_of(std::move(*taken), maps_of(pid_));
    }));
  }

  void follow(std::int32_t tid) {
    unwrap(alone([&] {
      provider_.forget_ended(pid_);  // their buffers are needed
      return provider_.start({pid_, tid});
    }));
  }

  std::string engine() {
    return alone([&] { return std::string(provider_.engine()->name()); });
  }

  std::vector<std::int32_t> threads() {
    std::vector<std::int32_t> tids;
    for (ThreadId thread : alone([&] { return provider_.threads(); })) tids.push_back(thread.tid);
    return tids;
  }

  std::vector<py::object> take_remarks() {
    std::vector<py::object> remarks;
    for (const Error& remark : alone([&] { return provider_.take_remarks(); }))
      remarks.push_back(to_exception(remark));
    return remarks;
  }

  void stop() {
    // The process may be gone: then there is nothing to stop.
    (void)alone([&] { return provider_.stop_process(pid_); });
  }

 private:
  static TraceProvider make(const std::string& engine, std::uint64_t ring_records) {
    perf::PerfConfig config;
    config.records.ring_records = ring_records;
    return {perf::real_kernel(), unwrap(parse_hardware(engine)), config};
  }

  Result<ThreadHistories> take(std::uint64_t limit) {
    // Threads that came since are recorded from here on.
    if (auto more = provider_.start_process(pid_); !more) return fail(std::move(more.error()));
    Result<StandingProcess> standing = StandingProcess::stop(pid_);
    if (!standing) return fail(std::move(standing.error()));
    auto snapshots = provider_.snapshot_process(pid_, limit);
    if (!snapshots) return fail(std::move(snapshots.error()));
    ThreadHistories histories;
    const std::string maps = maps_of(pid_);
    for (ThreadSnapshot& taken : *snapshots)
      histories.push_back(history_of(std::move(taken), maps));
    return histories;
  }

  std::int32_t pid_;
  std::mutex mutex_;  // guards what follows
  TraceProvider provider_;
};

}  // namespace

void bind_attach(py::module_& module) {
  py::class_<Attachment>(module, "Attachment")
      .def(py::init<std::int32_t, const std::string&, std::uint64_t>())
      .def("snapshot", &Attachment::snapshot)
      .def("snapshot_thread", &Attachment::snapshot_thread)
      .def("follow", &Attachment::follow)
      .def_property_readonly("engine", &Attachment::engine)
      .def_property_readonly("threads", &Attachment::threads)
      .def("take_remarks", &Attachment::take_remarks)
      .def("stop", &Attachment::stop);
  // Returns where the processor would record so; raises why it would not.
  module.def("try_hardware", [](const std::string& name) {
    auto hardware = unwrap(parse_hardware(name));
    unwrap([&]() -> Result<void> {
      py::gil_scoped_release release;
      return perf::try_hardware(perf::real_kernel(), hardware.value_or(perf::Hardware::kPt));
    }());
  });
  // How a process is held for a snapshot, by itself: calls `work` meanwhile.
  module.def("while_standing", [](std::int32_t pid, const py::function& work) {
    Result<StandingProcess> standing = [pid] {
      py::gil_scoped_release release;
      return StandingProcess::stop(pid);
    }();
    StandingProcess held = unwrap(std::move(standing));
    return work();
  });
}

}  // namespace tailtrace::python
