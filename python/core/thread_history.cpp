#include "python/core/thread_history.h"

#include <chrono>

#include "python/core/errors.h"

namespace tailtrace::python {

namespace py = pybind11;

void check_signals() {
  py::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

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

// A thread of its own makes it, so that Ctrl-C is answered meanwhile; what it makes is kept.
const History& ThreadHistory::history() {
  refuse_closed();
  std::shared_future<Made> made;
  {
    py::gil_scoped_release release;
    {
      std::lock_guard lock(make_mutex_);
      if (!made_.valid())
        made_ = std::async(std::launch::async, [snapshot = source_.snapshot] {
                  Result<std::shared_ptr<const ThreadSnapshot>> held = snapshot();
                  if (!held) return Made{fail(std::move(held.error()))};
                  return Made{std::make_shared<const History>(std::move(*held))};
                }).share();
      made = made_;
    }
    constexpr std::chrono::milliseconds kPatience(50);
    while (made.wait_for(kPatience) != std::future_status::ready) check_signals();
  }
  if (!made.get().history) raise(made.get().history.error());
  return **made.get().history;
}

}  // namespace tailtrace::python
