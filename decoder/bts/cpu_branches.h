// CpuBranches: the branches of several threads as the rings of CPUs hold them, samples or branch
// stacks that each say whose they are, and every thread's share of them.
//
// What an AUX area of intel_bts holds is not divided so: its records have no time, and nobody tells
// how often it went round while a thread had the CPU.
//
// Threading: pure functions over bytes; results own what they hold.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "decoder/bts/branch_list.h"
#include "decoder/perf/cpu_slots.h"
#include "decoder/perf/data_ring.h"
#include "decoder/perf/events.h"

namespace tailtrace::bts {

// What the kernel wrote of one thread in one go: a thread's samples are written together when it
// leaves the CPU, or some thousands are there; a stack by itself.
struct Batch {
  ThreadId thread;
  std::uint64_t time_ns = 0;     // when it was written, of perf's clock
  std::vector<Branch> branches;  // oldest first
  bool after_loss = false;       // samples of the thread were lost before it on this CPU
};

struct CpuBranches {
  std::vector<Batch> batches;  // by time
  // What was written before was overwritten, in part that of this time as well; 0: nothing was.
  std::uint64_t begin_ns = 0;
};

// Samples whose sample_type is IP, TID, TIME and ADDR.
constexpr std::uint64_t kOwnedSampleFields =
    perf::kSampleIp | perf::kSampleTid | perf::kSampleTime | perf::kSampleAddr;
constexpr std::uint16_t kOwnedSampleSize_bytes = 40;
CpuBranches read_cpu_samples(const perf::FixedRecords& records);

// Samples with TID, TIME and a branch stack. `overwritten`: older ones were.
// Errors: kBadInput for a record that cannot be read.
Result<CpuBranches> read_cpu_stacks(const perf::RecordList& records,
                                    const perf::RecordFormat& format, bool overwritten);

// The kernel may let two threads whose events were all inherited change places without writing what
// the first one did: then the second one's batch has branches of both. Where that is possible the
// batch is taken away and becomes a loss of both, as do batches from before the slots are known.
// `slots` are those of that CPU, `known_from_ns` is where they begin; `apart` says of a thread that
// it never does that with another of its kind.
void take_away_mixed(CpuBranches& cpu, const perf::CpuSlots& slots, std::uint64_t known_from_ns,
                     const std::function<bool(ThreadId)>& apart);

// A thread's batch, and whether some of its branches before it may be missing.
struct Share {
  const Batch* batch = nullptr;
  bool lost_before = false;
};

// Of every thread, by time. They refer to `cpus`.
std::map<ThreadId, std::vector<Share>> shares_by_thread(std::span<const CpuBranches> cpus);

}  // namespace tailtrace::bts
