// PerfRecording: the histories of threads in a perf.data file: Intel PT, Intel BTS, or stacks of
// last branches, whatever it holds.
//
// Opening reads what the kernel told beside the trace: who ran when, and which files were mapped.
// The trace of a thread is decoded when the thread is opened; traces by CPU are decoded once, for
// all threads.
//
// Threading: any number of threads may share one.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "decoder/history/opened_thread.h"
#include "decoder/perf_data/aux_queue.h"
#include "decoder/perf_data/file.h"
#include "decoder/perf_data/program_code.h"
#include "decoder/pt/segments/cpu_trace.h"

namespace tailtrace::perf {

class PerfRecording {
 public:
  // Beyond so many of a thread's records the oldest are left out.
  static constexpr std::uint64_t kMostRecords = 1u << 24;
  static constexpr std::size_t kMaxThreads = 1 << 16;
  static constexpr std::int32_t kMaxCpus = 1 << 12;

  struct Thread {
    ThreadId thread;
    std::string name;    // empty: not known
    std::string engine;  // "pt", "bts", "lbr"
  };

  // Errors: it cannot be read; kBadInput when it is no perf.data file, or there is no trace of
  // branches in it.
  static Result<std::shared_ptr<const PerfRecording>> open(const std::string& path);

  // The same for what is in `data`. `build_id_cache`: as CodeFiles has it.
  static Result<std::shared_ptr<const PerfRecording>> make(PerfData data,
                                                           std::string build_id_cache);

  // By number.
  const std::vector<Thread>& threads() const { return threads_; }

  // The newest `limit_records` of a thread. Errors: kGone when there is no such thread; kBadInput
  // when nobody can tell what of the trace is its.
  Result<OpenedThread> open_thread(ThreadId thread, std::uint64_t limit_records = ~0ull) const;

 private:
  // The kernel switched the hardware off: what it had written by then, and for whom.
  struct AuxTold {
    std::uint64_t time_ns = 0;
    std::int32_t cpu = -1;
    AuxEvent event;
  };

  PerfRecording(PerfData data, std::string build_id_cache);
  void read_sideband();
  void take_aux(const RecordRef& ref, const SampleId& id, const AuxEvent& event);
  void add_problems(std::size_t unused_queues);
  void take(const RecordRef& ref, const ParsedRecord& record);
  void take_task(const TaskEvent& task);
  void find_threads();
  struct Roots {
    std::set<std::int32_t> tids, pids;
  };
  bool is_traced(ThreadId thread, const Roots& roots) const;
  void find_switched(std::set<std::int32_t>& tids) const;
  void add_threads(const std::set<std::int32_t>& tids);
  std::int32_t pid_of(std::int32_t tid) const;
  std::uint64_t ticks(std::uint64_t time_ns) const;
  bool is_snapshot() const;
  pt::DecoderConfig decoder_config() const;

  OpenedThread frame_of(const Thread& thread) const;
  void put_tail(OpenedThread& opened, pt::Tail& tail, std::uint64_t limit) const;
  void put_records(OpenedThread& opened, ThreadSnapshot records, std::uint64_t limit) const;
  Result<void> open_pt_by_thread(const Thread& thread, std::uint64_t limit,
                                 OpenedThread& opened) const;
  Result<void> open_pt_by_cpu(const Thread& thread, std::uint64_t limit,
                              OpenedThread& opened) const;
  void decode_cpus() const;
  pt::CpuTrace decode_cpu(const AuxQueue& queue, std::size_t most_records,
                          const pt::JoinedCode& code, const pt::ProgramCodes& programs) const;
  Result<void> open_bts(const Thread& thread, std::uint64_t limit, OpenedThread& opened) const;
  Result<void> open_stacks(const Thread& thread, std::uint64_t limit, OpenedThread& opened) const;

  PerfData data_;
  std::optional<TimeConversion> clock_;
  RecordedPrograms programs_;
  std::vector<ToldHole> holes_;
  std::vector<AuxQueue> queues_;
  std::map<std::int32_t, std::vector<const AuxQueue*>> queues_of_threads_;
  std::map<std::int32_t, const AuxQueue*> queues_of_cpus_;
  std::map<std::int32_t, std::vector<AuxTold>> told_;          // of a thread, by time
  std::map<std::int32_t, CpuSlots> slots_;                     // by CPU
  std::map<std::int32_t, std::vector<std::uint32_t>> stacks_;  // of a thread: indices of records
  std::map<std::int32_t, ThreadId> parents_;                   // by thread
  std::map<std::int32_t, std::int32_t> pids_;                  // by thread
  std::map<std::int32_t, std::string> names_;                  // by thread
  std::set<std::int32_t> started_;                             // threads that were traced first
  std::uint64_t lost_ = 0, unreadable_ = 0;                    // records
  std::vector<Thread> threads_;
  std::vector<Error> problems_;

  mutable std::once_flag cpus_decoded_;
  mutable std::vector<pt::CpuTrace> cpus_;
  mutable std::map<ThreadId, std::vector<pt::CpuPiece>> pieces_;
};

}  // namespace tailtrace::perf
