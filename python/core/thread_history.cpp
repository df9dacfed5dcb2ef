#include "python/core/thread_history.h"

#include <chrono>

#include "decoder/history/long_history.h"
#include "python/core/errors.h"

namespace tailtrace::python {

namespace py = pybind11;

void ThreadHistory::refuse_closed() const {
  if (closed_)
    raise({ErrorCode::kGone,
           "cannot read the history",
           "its trace was closed",
           "keep it open as long as it is used",
           {}});
}

const RecordSpan& ThreadHistory::records() {
  refuse_closed();
  if (!source_.records) {
    size();
    auto all = interruptible([self = shared_from_this()] {
      return std::make_shared<const ThreadSnapshot>(self->made().snapshot());
    });
    py::gil_scoped_release release;
    std::lock_guard lock(make_mutex_);
    if (!records_)
      records_ = std::make_shared<RecordSpan>(RecordSpan{all, all->records, all->first});
    return *records_;
  }
  Result<RecordSpan> made;
  {
    py::gil_scoped_release release;
    std::lock_guard lock(make_mutex_);
    if (records_) return *records_;
    made = source_.records();
    if (made) {
      records_ = std::make_shared<const RecordSpan>(std::move(*made));
      return *records_;
    }
  }
  raise(made.error());
}

const History& ThreadHistory::history() {
  refuse_closed();
  std::shared_future<Made> made;
  {
    py::gil_scoped_release release;
    std::lock_guard lock(make_mutex_);
    if (!made_.valid()) {
      std::packaged_task<Made()> task([content = source_.content] {
        Result<OpenedThread> held = content();
        if (!held) return Made{fail(std::move(held.error())), {}, false};
        HistorySettings settings;
        settings.numbers = HistorySettings::Numbers::kFromNewest;
        return Made{std::make_shared<const History>(held->frame, held->source, settings),
                    std::move(held->maps), tailtrace::is_long(*held->source),
                    std::move(held->perf_map), std::move(held->stack)};
      });
      made_ = task.get_future().share();
      run_aside(std::move(task));
    }
    made = made_;
  }
  wait_for(made);
  if (!made.get().history) raise(made.get().history.error());
  return **made.get().history;
}

std::uint64_t ThreadHistory::size() {
  const History& all = history();
  if (!counted_) {
    interruptible([self = shared_from_this()] { return self->made().size(); });
    counted_ = true;
  }
  return all.size();
}

std::uint64_t ThreadHistory::record_shift() {
  const History& all = history();
  if (all.record_end().value != History::kNewest) return 0;
  size();
  return all.frame().first.value + all.record_count() - History::kNewest;
}

}  // namespace tailtrace::python
