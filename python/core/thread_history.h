// ThreadHistory: what Python calls a History. One thread of a trace, each part of it made when it
// is first asked for: records, history, how many items there are.
//
// Python names items by position, back from -1, the newest: these are known without counting.
//
// Threading: any number of Python threads. Long work is done without the interpreter's lock, and
// the object's own lock is never held while that one is waited for.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>

#include "decoder/base/no_signals.h"
#include "decoder/history/history.h"
#include "decoder/history/range.h"
#include "decoder/symbols/deleted_files.h"
#include "decoder/symbols/process_symbols.h"
#include "python/core/progress.h"
#include "python/core/source.h"

namespace tailtrace::python {

// Waits until the future is there. REQUIRES: the interpreter's lock is held.
template <class Future>
void wait_for(const Future& future) {
  constexpr std::chrono::milliseconds kPatience(50);
  pybind11::gil_scoped_release release;
  Progress progress("reading the history", 0);
  while (future.wait_for(kPatience) != std::future_status::ready) progress.look(0);
  progress.finish();
}

// Runs `work` on a thread of its own, which nobody joins.
template <class Work>
void run_aside(Work work) {
  NoSignals inherited;
  std::thread(std::move(work)).detach();
}

// Runs `work` on a thread of its own and waits for it, so that Ctrl-C is answered meanwhile; then
// the work goes on unobserved. What it holds is let go of before its end is told. REQUIRES: the
// interpreter's lock is held; `work` does not need it.
template <class Work>
auto interruptible(Work work) {
  using Value = decltype(work());
  std::promise<Value> promise;
  std::future<Value> value = promise.get_future();
  run_aside([promise = std::move(promise), work = std::optional(std::move(work))]() mutable {
    try {
      if constexpr (std::is_void_v<Value>) {
        (*work)();
        work.reset();
        promise.set_value();
      } else {
        Value made = (*work)();
        work.reset();
        promise.set_value(std::move(made));
      }
    } catch (...) {
      work.reset();
      promise.set_exception(std::current_exception());
    }
  });
  wait_for(value);
  return value.get();
}

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

  // How many items there are. The first time this looks at all of them. As history() otherwise.
  std::uint64_t size();

  // An item's number in made(), and back. REQUIRES: history() was called.
  std::uint64_t number_of(std::int64_t position) const {
    return made().newest() + 1 + static_cast<std::uint64_t>(position);
  }
  Range numbers_of(std::int64_t first, std::int64_t last) const {
    return {number_of(first), number_of(last)};
  }
  std::int64_t position_of(std::uint64_t number) const { return made().from_newest(number); }
  // What is added to the position of a record as made() has it: positions that begin at the newest
  // are not for users. May count, as size() does.
  std::uint64_t record_shift();

  // What was mapped where, as /proc/PID/maps has it. REQUIRES: history() was called.
  const std::string& maps() const { return made_.get().maps; }
  // The path of the process's (decoder/symbols/JIT.md); may be empty. REQUIRES: as maps().
  const std::string& perf_map() const { return made_.get().perf_map; }

  // Where it ends: OpenedThread's. REQUIRES: as maps().
  const std::vector<Address>& stack() const { return made_.get().stack; }

  // Whether it takes a while to count it (long_history.h). REQUIRES: history() was called.
  bool is_long() const { return made_.get().is_long; }

  // From now on all calls fail; buffers that were handed out stay good.
  void close() { closed_ = true; }
  bool closed() const { return closed_; }

  // Calls `use(cursor, symbols)`, after history(), without the interpreter's lock; one thread at a
  // time. REQUIRES: the interpreter's lock is held, and is not taken by `use`.
  template <class Use>
  auto with_cursor(Use use) {
    history();
    pybind11::gil_scoped_release release;
    return locked(use);
  }

  // Calls `use(symbols)` in the same way. REQUIRES: history() was called, and the interpreter's
  // lock is not held.
  template <class Use>
  auto with_symbols(Use use) {
    return locked([&](HistoryCursor&, ProcessSymbols& symbols) { return use(symbols); });
  }

  // The same for what takes long; Ctrl-C ends the waiting for it. `use` owns what it uses.
  template <class Use>
  auto with_cursor_long(Use use) {
    history();
    return interruptible([self = shared_from_this(), use] { return self->locked(use); });
  }

 private:
  // Either what was made or why it could not be.
  struct Made {
    Result<std::shared_ptr<const History>> history;
    std::string maps;
    bool is_long = false;
    std::string perf_map = {};
    std::vector<Address> stack = {};
  };
  template <class Use>
  auto locked(Use use) {
    std::lock_guard lock(cursor_mutex_);
    if (!cursor_) {
      cursor_ = std::make_unique<HistoryCursor>(made());
      symbols_ =
          std::make_unique<ProcessSymbols>(mappings_of(source_.thread.pid, maps()), perf_map());
      symbols_->know_history(made().frame());
    }
    return use(*cursor_, *symbols_);
  }
  void refuse_closed() const;

  ThreadSource source_;
  std::atomic<bool> closed_ = false;

  std::mutex make_mutex_;  // guards records_ and made_
  std::shared_ptr<const RecordSpan> records_;
  std::shared_future<Made> made_;
  std::atomic<bool> counted_ = false;

  std::mutex cursor_mutex_;  // guards the two that follow
  std::unique_ptr<HistoryCursor> cursor_;
  std::unique_ptr<ProcessSymbols> symbols_;
};

using ThreadHistories = std::vector<std::shared_ptr<ThreadHistory>>;

}  // namespace tailtrace::python
