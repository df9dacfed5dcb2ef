// CpuBranches: the branches of several threads as the rings of CPUs hold them, samples or branch
// stacks that each say whose they are, and every thread's share of them. cpu_area.h has those that
// do not say it.
//
// Threading: pure functions over bytes; results own what they hold.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "decoder/bts/branch_list.h"
#include "decoder/perf/cpu_slots.h"
#include "decoder/perf/data_ring.h"
#include "decoder/perf/events.h"
#include "decoder/record/branch_record.h"

namespace tailtrace::bts {

// What the kernel wrote of one thread in one go: a thread's samples are written together when it
// leaves the CPU, or some thousands are there; a stack by itself.
struct Batch {
  ThreadId thread;
  std::uint64_t time_ns = 0;     // when it was written, of perf's clock
  std::vector<Branch> branches;  // oldest first
  // Branches of the thread were lost before it on this CPU.
  std::optional<GapCause> after_loss;
};

struct CpuBranches {
  std::vector<Batch> batches;  // by time
  // What was written before was overwritten, in part that of this time as well; 0: nothing was.
  std::uint64_t begin_ns = 0;
};

// Samples whose sample_type is IP, TID, TIME and ADDR.
constexpr std::uint16_t kOwnedSampleSize_bytes = 40;
CpuBranches read_cpu_samples(const perf::FixedRecords& records);

// Samples with TID, TIME and a branch stack. `overwritten`: older ones were.
// Errors: kBadInput for a record that cannot be read.
Result<CpuBranches> read_cpu_stacks(const perf::RecordList& records,
                                    const perf::RecordFormat& format, bool overwritten);

// Whether two threads may have changed places at that time without the kernel writing what the
// first one did, as it does where all events of both were inherited. The second may be none, {}:
// any.
using MayChangePlaces = std::function<bool(ThreadId, ThreadId, std::uint64_t time_ns)>;

// Where they did, the second one's batch has branches of both. Where that is possible the batch is
// taken away and becomes a loss of both, as do batches from before the slots are known. `slots` are
// those of that CPU, `known_from_ns` is where they begin.
void take_away_mixed(CpuBranches& cpu, const perf::CpuSlots& slots, std::uint64_t known_from_ns,
                     const MayChangePlaces& may);

// The same for stacks, of which none is mixed: but where threads changed places, more branches may
// lie between two of them than their period says. It is a loss of both.
void part_stacks(CpuBranches& cpu, const perf::CpuSlots& slots, std::uint64_t known_from_ns,
                 const MayChangePlaces& may);

// A thread's batch, and why some of its branches before it may be missing, if they may.
struct Share {
  const Batch* batch = nullptr;
  std::optional<GapCause> lost_before;
};

// Of every thread that is known, by time. They refer to `cpus`.
std::map<ThreadId, std::vector<Share>> shares_by_thread(std::span<const CpuBranches> cpus);

}  // namespace tailtrace::bts
