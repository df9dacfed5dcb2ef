// TraceProvider: records threads of running processes with the best hardware that this machine
// offers, and hands over what they did last.
//
// It neither stops nor controls anybody: a debugger, or whoever else stops the threads, does. A
// snapshot is taken of a thread that stands.
//
// Threading: one thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plugin/engines/perf/perf_engine.h"

namespace tailtrace {

// "pt", "bts", "lbr"; "auto" is nothing. Errors: kUsage.
Result<std::optional<perf::Hardware>> parse_hardware(std::string_view name);

class TraceProvider {
 public:
  // With no hardware named the first that works is taken, in the order pt, bts, lbr, when the first
  // thread is started. `kernel` must outlive the provider.
  TraceProvider(perf::Kernel& kernel, std::optional<perf::Hardware> hardware,
                perf::PerfConfig config);

  // Records a thread from now on. Starting a thread that is recorded changes nothing.
  // Errors: kGone, kPermission, kNoEngine, ...; where no hardware works, why none does.
  Result<void> start(ThreadId thread);

  // The same for all threads that the process has now. Call it again for threads that came since;
  // threads that ended meanwhile are no error. Errors: as start(); then no thread is recorded that
  // was not before.
  Result<void> start_process(std::int32_t pid);

  // What was recorded is dropped. Errors: kGone when it was not recorded.
  Result<void> stop(ThreadId thread);
  Result<void> stop_process(std::int32_t pid);

  // Stops recording those threads of the process that ended meanwhile.
  void forget_ended(std::int32_t pid);

  std::vector<ThreadId> threads() const { return {threads_.begin(), threads_.end()}; }

  // The newest `limit` records of a thread that stands at `pc`; without it /proc is asked.
  // Errors: kGone when it is not recorded, kUsage when it runs.
  Result<ThreadSnapshot> snapshot(ThreadId thread, std::optional<Address> pc, std::uint64_t limit);
  // Of all recorded threads of the process, by thread. Those that ended are left out, and are not
  // recorded any more. Errors: as snapshot(); kGone when none is left.
  Result<std::vector<ThreadSnapshot>> snapshot_process(std::int32_t pid, std::uint64_t limit);

  // Null before the first thread is started.
  perf::PerfEngine* engine() { return engine_.get(); }

  // What turned out otherwise than asked since the last call: hardware passed over, a smaller
  // buffer.
  std::vector<Error> take_remarks();

 private:
  Result<void> choose(ThreadId thread);

  perf::Kernel& kernel_;
  std::optional<perf::Hardware> hardware_;
  perf::PerfConfig config_;
  std::unique_ptr<perf::PerfEngine> engine_;
  std::set<ThreadId> threads_;
  std::vector<Error> remarks_;
};

}  // namespace tailtrace
