// ProcessRecording: Intel PT of a whole process whose threads come and go, and on request of the
// processes that it makes: a buffer for each CPU, inherited by whatever is made, and beside it the
// kernel's records of who was on that CPU when. A thread's history is gathered from all of them.
//
// A thread's own buffer (PerfEngine) is the better choice for threads that are there already: its
// history ends with what the thread did last, however long ago that was.
//
// Every process is read with its own code of that time: libraries come and go, processes begin with
// their parents' code, and programs replace each other.
//
// Threading: one thread at a time; the recorded ones run meanwhile.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "decoder/pt/cpu_trace.h"
#include "plugin/engines/perf/aux_event.h"
#include "plugin/engines/perf/perf_engine.h"
#include "plugin/engines/perf/program_codes.h"
#include "plugin/engines/perf/sideband.h"

namespace tailtrace::perf {

class ProcessRecording {
 public:
  // Records all threads that there are, and all that they make; `children`: processes as well.
  // `config.buffer_bytes` is for each CPU. Errors: all that explain() tells; kGone; kNoEngine where
  // the kernel's clock is not the processor's, as in many virtual machines: then nobody can tell
  // whose trace it is.
  static Result<ProcessRecording> start(Kernel& kernel, const PerfConfig& config, std::int32_t pid,
                                        bool children);

  // The newest `limit` records of every thread that was seen, by thread. Threads may run: then
  // their history ends somewhere before now. A thread that has ended leaves its history behind.
  Result<std::vector<ThreadSnapshot>> snapshot(std::uint64_t limit);

  // Takes a look at the code that the processes have, which is not there any more once they end.
  Result<void> look();

  // The names of all threads that were seen, by thread, also of those that have ended.
  const std::map<std::int32_t, std::string>& names() const { return names_; }
  // Empty for a thread that was not seen.
  std::string name(ThreadId thread) const;

  std::size_t cpus() const { return cpus_.size(); }

 private:
  struct Cpu {
    std::vector<Event> trace;     // the first has the buffer; the others write into it
    std::vector<Event> sideband;  // the same: who was on the CPU when
    Sideband told;                // what those did to their code and names
  };
  ProcessRecording(Kernel& kernel, std::int32_t pid, bool children)
      : kernel_(&kernel), codes_(pid, children) {}
  Result<void> open_cpu(const PerfConfig& config, const perf_event_attr& attr, int number,
                        const std::vector<ThreadId>& threads, bool children);
  Result<pt::CpuTrace> read(Cpu& cpu, const pt::JoinedCode& code);
  ThreadSnapshot gather(ThreadId thread, const std::vector<pt::CpuPiece>& pieces,
                        std::uint64_t limit);

  Kernel* kernel_;
  pt::DecoderConfig decoder_;
  std::vector<Cpu> cpus_;
  std::vector<Event> anchors_;
  TimeConversion clock_;
  ProgramCodes codes_;
  std::map<std::int32_t, std::string> names_;
};

}  // namespace tailtrace::perf
