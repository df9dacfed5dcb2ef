// ProcessRecording: a whole process whose threads come and go, and on request the processes that it
// makes: a buffer for each CPU, inherited by whatever is made, and beside it the kernel's records
// of who was on that CPU when. A thread's history is gathered from all of them.
//
// Of Intel PT the kernel overwrites the oldest part by itself. Of an area of intel_bts it would not
// tell then which part of it is whose, as its records have neither owner nor time: there an
// AreaKeeper makes room instead. Where that area is refused, or absent, BTS is sampled.
//
// A thread's own buffer (PerfEngine) is the better choice for threads that are there already: its
// history ends with what the thread did last, however long ago that was.
//
// Every process is read with its own code of that time: libraries come and go, processes begin with
// their parents' code, and programs replace each other.
//
// Threading: one thread at a time; the recorded ones run meanwhile, and an AreaKeeper's.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "decoder/bts/cpu_area.h"
#include "decoder/pt/segments/cpu_trace.h"
#include "plugin/engines/perf/area_keeper.h"
#include "plugin/engines/perf/aux_event.h"
#include "plugin/engines/perf/perf_engine.h"
#include "plugin/engines/perf/program_codes.h"
#include "plugin/engines/perf/sideband.h"

namespace tailtrace::perf {

class ProcessRecording {
 public:
  // Records all threads that there are, and all that they make; `children`: processes as well.
  // `config.buffer_bytes` is for each CPU. Errors: all that explain() tells; kGone; for Intel PT
  // kNoEngine where the kernel's clock is not the processor's, as in many virtual machines: then
  // nobody can tell whose trace it is.
  static Result<ProcessRecording> start(Kernel& kernel, Hardware hardware, const PerfConfig& config,
                                        std::int32_t pid, bool children);

  ProcessRecording(ProcessRecording&&) = default;
  ProcessRecording& operator=(ProcessRecording&&) = delete;

  // The newest `limit` records of every thread that was seen, by thread. Threads may run: then
  // their history ends somewhere before now. A thread that has ended leaves its history behind.
  Result<std::vector<ThreadSnapshot>> snapshot(std::uint64_t limit);

  // Takes a look at the code that the processes have, which is not there any more once they end.
  Result<void> look();

  // Told of a thread that was just made, and stands before its first instruction, its branches are
  // kept apart from those of threads that it makes in turn. look() does so for all threads there
  // are; what two of them did that nobody was told of before may be a gap.
  void adopt(ThreadId thread);
  // Where a thread stands that ends: its history ends there. Else that of a thread that has ended
  // ends with its last branch.
  void stands_last(ThreadId thread, Address pc) { stops_[thread] = pc; }

  // The names of all threads that were seen, by thread, also of those that have ended.
  const std::map<std::int32_t, std::string>& names() const { return names_; }
  // Empty for a thread that was not seen.
  std::string name(ThreadId thread) const;

  std::size_t cpus() const { return cpus_.size(); }

  // What turned out otherwise than asked since the last call: smaller buffers.
  std::vector<Error> take_remarks() { return std::exchange(remarks_, {}); }

 private:
  struct Cpu {
    std::vector<Event> trace;     // the first has the buffer; the others write into it
    std::vector<Event> sideband;  // the same: who was on the CPU when
    Sideband told;                // what those did to their code and names
  };
  ProcessRecording(Kernel& kernel, Hardware hardware, const PerfConfig& config, std::int32_t pid,
                   bool children)
      : kernel_(&kernel),
        hardware_(hardware),
        config_(config),
        children_(children),
        codes_(pid, children) {}
  struct Slots {
    CpuSlots slots;
    std::uint64_t begin_ns = 0;  // who had the CPU before is not known; 0: all is
  };
  static constexpr std::uint64_t kSidebandFields = kSampleTid | kSampleTime;
  using AllQuiet = std::vector<std::unique_ptr<Quiet>>;

  Result<perf_event_attr> attr() const;
  Result<perf_event_attr> hardware_attr() const;
  Purpose purpose() const;
  RecordFormat format() const;
  Result<Event> open_trace(const perf_event_attr& attr, Target target, bool has_buffer);
  Result<void> open_all(const std::vector<ThreadId>& threads);
  Result<void> open_sideband(Target target, Cpu& cpu);
  Result<void> open_thread(const perf_event_attr& attr, Target target, Cpu& cpu);
  Result<void> open_cpus(const std::vector<ThreadId>& threads);
  bool open_anchors(ThreadId thread);
  void note_task(const TaskEvent& task, std::uint64_t now_ns);
  Result<void> note_clock();
  Result<void> keep_areas();
  std::uint64_t now_ns() const;

  std::optional<Address> stop_of(ThreadId thread) const;
  bool may_change_places(ThreadId one, ThreadId other, std::uint64_t time_ns) const;
  AllQuiet hold();
  Result<Slots> read_slots(const Cpu& cpu) const;
  Result<std::vector<ThreadSnapshot>> pt_snapshot(std::uint64_t limit);
  Result<bts::CpuBranches> read_written(const Cpu& cpu) const;
  Result<bts::CpuBranches> read_branches(std::size_t cpu) const;
  Result<std::vector<bts::CpuBranches>> read_all_branches();
  Result<std::vector<ThreadSnapshot>> branch_snapshot(std::uint64_t limit);
  Result<pt::CpuTrace> read(Cpu& cpu, const pt::JoinedCode& code);
  ThreadSnapshot gather(ThreadId thread, const std::vector<pt::CpuPiece>& pieces,
                        std::uint64_t limit);

  Kernel* kernel_;
  Hardware hardware_;
  PerfConfig config_;
  bool children_;
  pt::DecoderConfig decoder_;
  bool area_ = false;  // BTS, not sampled
  std::vector<Cpu> cpus_;
  std::unique_ptr<AreaKeeper> keeper_;  // of all areas; ends before they do
  std::vector<bts::Pause> pauses_;      // of all CPUs where nobody keeps an area
  std::vector<Event> anchors_;
  TimeConversion clock_;
  ProgramCodes codes_;
  std::map<std::int32_t, std::string> names_;
  std::vector<Error> remarks_;
  std::map<std::int32_t, std::uint64_t> anchored_;  // from a time on; 0: all the time
  std::set<std::int32_t> apart_;                    // made by one that was anchored
  std::set<std::int32_t> ended_;                    // others may get their numbers
  std::map<ThreadId, Address> starts_;              // where the first threads stood
  std::map<ThreadId, Address> stops_;               // where threads stood last
};

}  // namespace tailtrace::perf
