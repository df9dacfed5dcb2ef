#include "python/core/thread_history.h"

#include <chrono>

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
    history();
    std::lock_guard lock(make_mutex_);
    const std::shared_ptr<const History>& owner = *made_.get().history;
    if (!records_) {
      auto all = std::make_shared<const ThreadSnapshot>(owner->snapshot());
      records_ = std::make_shared<RecordSpan>(RecordSpan{all, all->records, all->first});
    }
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
        if (!held) return Made{fail(std::move(held.error())), {}};
        return Made{std::make_shared<const History>(held->frame, held->source, HistorySettings{}),
                    std::move(held->maps)};
      });
      made_ = task.get_future().share();
      std::thread(std::move(task)).detach();
    }
    made = made_;
  }
  wait_for(made);
  if (!made.get().history) raise(made.get().history.error());
  return **made.get().history;
}

}  // namespace tailtrace::python
