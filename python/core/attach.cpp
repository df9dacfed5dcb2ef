#include "python/core/attach.h"

#include <pybind11/stl.h>

#include "plugin/provider/trace_provider.h"
#include "python/core/errors.h"
#include "python/core/live_source.h"
#include "python/core/standing_process.h"
#include "python/core/thread_history.h"

namespace tailtrace::python {

namespace py = pybind11;

namespace {

std::shared_ptr<ThreadHistory> history_of(ThreadSnapshot&& taken) {
  return std::make_shared<ThreadHistory>(live_source(std::move(taken)));
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
      return history_of(std::move(*taken));
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
    for (ThreadSnapshot& taken : *snapshots) histories.push_back(history_of(std::move(taken)));
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
