// CpuTrace: what each CPU did, decoded, and the threads' own histories gathered out of it.
//
// A trace by CPU does not say whose it is. The side-band tells which thread had the CPU when, and
// each process has code of its own: so each is decoded with the code of whoever was there, cut into
// stretches, and a thread's stretches are put one behind the other by time.
//
// Threading: pure functions over values.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "decoder/perf/clock.h"
#include "decoder/perf/cpu_slots.h"
#include "decoder/pt/fast/stretch_log.h"

namespace tailtrace::pt {

// The code of a process, and where its epochs but the first begin. Both must outlive this.
struct ProgramCode {
  const CodeImage* image = nullptr;
  std::span<const EpochBegin> begins;  // by time
};
using ProgramCodes = std::map<std::int32_t, ProgramCode>;  // by pid

// One image in which every process has epochs of its own, from `bases` on.
struct JoinedCode {
  CodeImage image;
  std::map<std::int32_t, Epoch> bases;
};
JoinedCode join_codes(const ProgramCodes& programs);

// For a decoder of what a CPU did: in each slot the epochs of the process that had it; of `first`
// where that is none of the programs. REQUIRES: `first` is one; `joined` was made of the programs.
std::vector<CodeChange> slot_changes(const JoinedCode& joined, const ProgramCodes& programs,
                                     std::int32_t first, const perf::CpuSlots& slots,
                                     const perf::TimeConversion& clock);

struct CpuTrace {
  StretchLog log;
  perf::CpuSlots slots;
  std::uint64_t begin_ns = 0;  // older trace was lost; 0: nothing was
};

// What a thread did in one of its slots.
struct CpuPiece {
  const CpuTrace* cpu = nullptr;  // must not move
  perf::CpuSlot slot;
  std::vector<StretchLog::Stretch> stretches;
  bool lost_before = false;  // since the piece before it, maybe
};

// Of every thread, by time: the slots in which something was traced, or was lost. What was traced
// in slots that are no thread's may be anybody's.
std::map<ThreadId, std::vector<CpuPiece>> pieces_by_thread(std::span<const CpuTrace> cpus,
                                                           const perf::TimeConversion& clock);

// Puts them into `tail`, with gaps where something was lost in between. Returns whether nothing is
// missing at the begin either.
bool play_pieces(std::span<const CpuPiece> pieces, Tail& tail);

}  // namespace tailtrace::pt
