// PerfEngine: records with the processor's own tracing, through Linux's perf events: Intel PT,
// Intel BTS, or last branch records.
//
// One event for each thread, in a buffer that overwrites its oldest contents. While the thread runs
// nothing is done, and nothing at a stop either, until somebody asks.
//
// Threading: one thread at a time, as every Engine.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plugin/engines/engine.h"
#include "plugin/engines/perf/marker_set.h"
#include "plugin/engines/perf/sideband.h"
#include "plugin/engines/perf/thread_recorder.h"

namespace tailtrace::perf {

enum class Hardware { kPt, kBts, kLbr };

class PerfEngine final : public Engine {
 public:
  // Opens nothing yet: what the machine refuses shows with the first thread. `kernel` must outlive
  // the engine.
  PerfEngine(Kernel& kernel, Hardware hardware, PerfConfig config);
  ~PerfEngine() override;

  // Threads that are started from now on are recorded so. Those that are recorded take over what is
  // new: more markers behind the others, filters and triggers that were to come later. Errors: all
  // that explain() tells; the other threads have it all the same.
  Result<void> reconfigure(PerfConfig config);

  std::string_view name() const override;
  bool counts_branches() const override { return false; }
  Result<void> start(ThreadId thread) override;
  Result<void> stop(ThreadId thread) override;
  bool is_recording(ThreadId thread) const override;
  // Decodes what is new.
  Result<Position> head(ThreadId thread) const override;
  Result<ThreadSnapshot> snapshot(ThreadId thread, const Stop& stop, std::uint64_t limit) override;

  // The hits of the markers (PerfConfig::markers) that the last snapshot of the thread shows, in
  // the order of time, each with its record's position; nothing where it is not in the history.
  struct Hit {
    std::size_t marker = 0;
    MarkerHit hit;
    std::optional<Position> place;
  };
  const std::vector<Hit>& last_hits() const { return hits_; }
  // The same as each marker logged it, by marker.
  const std::map<std::size_t, MarkerLog>& last_logs() const { return logs_; }

  // The buffer of a thread, in bytes. Errors: kGone.
  Result<std::uint64_t> buffer_bytes(ThreadId thread) const;

  // What turned out otherwise than asked since the last call: a smaller buffer, a second choice.
  std::vector<Error> take_remarks();

 private:
  struct Process {
    std::unique_ptr<ProcessCode> code;
    std::map<std::int32_t, Sideband> told;  // by thread
    std::size_t threads = 0;
  };

  void watch_code(ThreadId thread);
  Result<CodeInUse> code_now(ThreadId thread) const;
  Result<ThreadRecorder*> refreshed(ThreadId thread, CodeInUse& code) const;

  Result<std::unique_ptr<ProcessCode>> new_code(ThreadId thread);

  Kernel& kernel_;
  std::optional<CodeImage> kernel_code_;  // read once, where it is asked for
  Hardware hardware_;
  PerfConfig config_;
  Result<void> merge_hits(ThreadId thread, ThreadSnapshot& snapshot);

  std::map<ThreadId, std::unique_ptr<ThreadRecorder>> recorders_;
  std::map<ThreadId, MarkerSet> markers_;
  std::vector<Hit> hits_;
  std::map<std::size_t, MarkerLog> logs_;
  mutable std::map<std::int32_t, Process> processes_;  // what is told is taken when it is asked for
  std::vector<Error> remarks_;
};

// Whether this machine lets the calling thread be recorded so: an event is opened, mapped and
// closed again. The error says why not.
Result<void> try_hardware(Kernel& kernel, Hardware hardware);

}  // namespace tailtrace::perf
