// Engine: records the branches of a process's threads; one interface for all ways to do it.
//
// The hardware engines (perf), the qemu engine and the step engine implement it. An engine writes
// into overwriting rings by itself; nothing is polled and nothing is asked of it until somebody
// wants a snapshot.
//
// Threading: an engine is used by one thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "decoder/base/result.h"
#include "decoder/history/snapshot.h"

namespace tailtrace {

struct EngineConfig {
  std::uint64_t ring_records = 1ull << 16;  // per thread; a power of two
};

class Engine {
 public:
  virtual ~Engine() = default;

  // As the user names it: "qemu", "step", "pt", "bts", ...
  virtual std::string_view name() const = 0;

  // From here on the thread's branches count as recorded. Starting a thread that is recorded is no
  // error and changes nothing. Errors: kGone, kPermission, kSystem.
  virtual Result<void> start(ThreadId thread) = 0;

  // Ends it; what was recorded is dropped. Errors: kGone when it was not recorded.
  virtual Result<void> stop(ThreadId thread) = 0;

  virtual bool is_recording(ThreadId thread) const = 0;

  // Whether the engine has the thread's history from its first instruction on, as of a thread that
  // was made by a recorded process.
  virtual bool was_born_recorded(ThreadId) const { return false; }

  // Whether a snapshot of a few records costs so little that it can be taken at each stop, and the
  // records do not show stops by themselves.
  virtual bool can_mark_stops() const { return false; }

  // Whether what is kept of a thread is measured in branches (EngineConfig::ring_records), not in
  // bytes of a trace.
  virtual bool counts_branches() const { return true; }

  // Whether the engine itself has a process tell of threads beyond a number, by a stop that says
  // `create`: it would not be known in time that they were made.
  virtual bool tells_of_threads() const { return false; }
  // How many more threads a process, which stands still, may make untold; nothing: any number.
  virtual void set_thread_room(std::int32_t, std::optional<std::uint64_t>) {}

  // Where a thread stands while it is stopped.
  struct Stop {
    Address pc;            // the instruction to be executed next
    bool faulted = false;  // the instruction at `pc` was tried and raised a synchronous signal
  };

  // The position that the next record will get. Equal values mean: nothing new since, but for
  // straight-line progress that Stop.pc tells. Errors: kGone.
  virtual Result<Position> head(ThreadId thread) const = 0;

  // The newest `limit` records of a stopped thread; what closes it where it stands comes on top.
  // Errors: kGone when the thread is not recorded.
  virtual Result<ThreadSnapshot> snapshot(ThreadId thread, const Stop& stop,
                                          std::uint64_t limit) = 0;
};

}  // namespace tailtrace
