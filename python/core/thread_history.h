// ThreadHistory: what Python calls a History. One thread of a trace, each part of it made when it
// is first asked for: records, snapshot, history.
//
// Threading: any number of Python threads. Long work is done without the interpreter's lock, and
// the object's own lock is never held while that one is waited for.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <future>
#include <memory>
#include <mutex>

#include "decoder/history/history.h"
#include "decoder/history/symbolizer.h"
#include "python/core/source.h"

namespace tailtrace::python {

// Lets Ctrl-C through: throws what pybind11 turns into KeyboardInterrupt.
// REQUIRES: the interpreter's lock is not held.
void check_signals();

class ThreadHistory : public std::enable_shared_from_this<ThreadHistory> {
 public:
  explicit ThreadHistory(ThreadSource source) : source_(std::move(source)) {}

  const ThreadSource& source() const { return source_; }

  // Both wait for what is not made yet. REQUIRES: the interpreter's lock is held. They throw what
  // becomes a Python exception.
  const RecordSpan& records();
  const History& history();

  // What history() has returned before. REQUIRES: it has.
  const History& made() const { return **made_.get().history; }

  // From now on all calls fail; buffers that were handed out stay good.
  void close() { closed_ = true; }
  bool closed() const { return closed_; }

  // Calls `use(cursor, symbols)`, after history(), without the interpreter's lock; one thread at a
  // time. REQUIRES: the interpreter's lock is held, and is not taken by `use`.
  template <class Use>
  auto with_cursor(Use use) {
    const History& history = this->history();
    pybind11::gil_scoped_release release;
    std::lock_guard lock(cursor_mutex_);
    if (!cursor_) cursor_ = std::make_unique<HistoryCursor>(history);
    return use(*cursor_, symbols_);
  }

 private:
  // Either what was made or why it could not be.
  struct Made {
    Result<std::shared_ptr<const History>> history;
  };
  void refuse_closed() const;

  ThreadSource source_;
  std::atomic<bool> closed_ = false;

  std::mutex make_mutex_;  // guards the two that follow
  std::shared_ptr<const RecordSpan> records_;
  std::shared_future<Made> made_;

  std::mutex cursor_mutex_;  // guards the two that follow
  std::unique_ptr<HistoryCursor> cursor_;
  NoSymbols symbols_;
};

}  // namespace tailtrace::python
