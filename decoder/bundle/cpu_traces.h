// CpuTraces: Intel PT of processors, taken apart into the threads that they executed.
//
// A processor's trace is a row of blocks, each from one PSB to the next, that says at its begin
// when it was written. A block belongs to the thread that was executed then. It ends, for that
// thread, at the first time in it that is later than the thread's execution: what follows was
// executed by others, as was what comes before a thread's first PSB. A block without an owner is
// told, not guessed at.
//
// Threading: immutable once made; share it freely.
#pragma once

#include <span>
#include <vector>

#include "decoder/base/file.h"
#include "decoder/bundle/context_switches.h"
#include "decoder/history/pt_segments.h"

namespace tailtrace {

struct LldbCpu;

// A thread's own trace: stretches of those of processors, in the order in which it ran them.
struct ThreadTrace {
  Bytes bytes;
  std::vector<PtJoint> joints;
  std::uint64_t executions = 0;         // of the thread, wherever
  std::uint64_t executions_traced = 0;  // of which there is a trace
};

class CpuTraces {
 public:
  struct Totals {
    std::uint64_t blocks = 0;        // PSBs
    std::uint64_t unattributed = 0;  // to any thread
    std::uint64_t untimed = 0;       // that do not say when they were written
    std::uint64_t executions = 0;
  };

  // Errors: a file cannot be read; kBadInput for context switches that cannot be used.
  static Result<CpuTraces> open(std::span<const LldbCpu> cpus, const perf::TimeConversion& clock);

  // The threads that were executed, each once; by processor and time.
  const std::vector<ThreadId>& threads() const { return threads_; }
  const Totals& totals() const { return totals_; }

  // Of a thread that was never executed: nothing. `tid` alone counts, as numbers of threads are
  // unique on a machine.
  ThreadTrace of_thread(std::int32_t tid) const;

  // What is missing in it, or may be.
  std::vector<Error> problems_of(const ThreadTrace& trace, std::int32_t tid) const;

 private:
  // A stretch of time on a processor, with what was traced of it.
  struct Share {
    std::size_t cpu = 0;
    std::size_t begin = 0, end = 0;  // bytes of the processor's trace; empty: there is no trace
    std::uint64_t time = 0;          // of its first block, else of the execution
    std::int32_t tid = 0;
    bool begin_known = false, end_known = false;

    bool is_traced() const { return begin != end; }
  };

  void attribute(std::size_t cpu, std::span<const CpuExecution> executions);

  std::vector<MappedFile> traces_;  // by processor
  std::vector<Share> shares_;       // by thread and time
  std::vector<ThreadId> threads_;
  Totals totals_;
};

}  // namespace tailtrace
