#include "python/core/attach.h"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include "decoder/base/file.h"
#include "decoder/symbols/generated_files.h"
#include "plugin/provider/trace_provider.h"
#include "python/core/errors.h"
#include "python/core/standing_process.h"
#include "python/core/thread_history.h"

namespace tailtrace::python {

namespace py = pybind11;

namespace {

constexpr std::size_t kMaxMaps_bytes = 16 << 20;

// A process that is being recorded.
class Attachment {
 public:
  Attachment(std::int32_t pid, const std::string& engine, std::uint64_t ring_records)
      : pid_(pid), provider_(make(engine, ring_records)) {
    Result<void> started;
    {
      py::gil_scoped_release release;
      started = provider_.start_process(pid);
    }
    unwrap(std::move(started));
  }

  py::list snapshot(std::uint64_t limit) {
    std::vector<ThreadSource> sources;
    Result<void> taken;
    {
      py::gil_scoped_release release;
      taken = take(limit, sources);
    }
    unwrap(std::move(taken));
    py::list threads;
    for (ThreadSource& source : sources)
      threads.append(py::cast(std::make_shared<ThreadHistory>(std::move(source))));
    return threads;
  }

  void stop() {
    py::gil_scoped_release release;
    (void)provider_.stop_process(pid_);  // the process may be gone: then there is nothing to stop
  }

 private:
  static TraceProvider make(const std::string& engine, std::uint64_t ring_records) {
    perf::PerfConfig config;
    config.records.ring_records = ring_records;
    return {perf::real_kernel(), unwrap(parse_hardware(engine)), config};
  }

  Result<void> take(std::uint64_t limit, std::vector<ThreadSource>& sources) {
    // Threads that came since are recorded from here on.
    if (auto more = provider_.start_process(pid_); !more) return more;
    Result<StandingProcess> standing = StandingProcess::stop(pid_);
    if (!standing) return fail(std::move(standing.error()));
    auto snapshots = provider_.snapshot_process(pid_, limit);
    if (!snapshots) return fail(std::move(snapshots.error()));
    auto maps = read_file(fmt::format("/proc/{}/maps", pid_), kMaxMaps_bytes);
    std::string text = maps ? std::string(as_text(*maps)) : std::string();
    for (ThreadSnapshot& snapshot : *snapshots) {
      ThreadSource source;
      source.thread = snapshot.thread;
      source.engine = snapshot.engine;
      auto shared = std::make_shared<const ThreadSnapshot>(std::move(snapshot));
      source.records = [shared]() -> Result<RecordSpan> {
        return RecordSpan{shared, shared->records, shared->first};
      };
      source.content = [shared, text]() -> Result<OpenedThread> {
        return opened_thread({shared, text, {}, perf_map_of(shared->thread.pid)});
      };
      sources.push_back(std::move(source));
    }
    return {};
  }

  std::int32_t pid_;
  TraceProvider provider_;
};

}  // namespace

void bind_attach(py::module_& module) {
  py::class_<Attachment>(module, "Attachment")
      .def(py::init<std::int32_t, const std::string&, std::uint64_t>())
      .def("snapshot", &Attachment::snapshot)
      .def("stop", &Attachment::stop);
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
