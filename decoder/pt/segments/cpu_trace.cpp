#include "decoder/pt/segments/cpu_trace.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace tailtrace::pt {

JoinedCode join_codes(const ProgramCodes& programs) {
  JoinedCode joined;
  for (const auto& [pid, code] : programs) joined.bases[pid] = joined.image.append(*code.image);
  return joined;
}

std::vector<CodeChange> slot_changes(const JoinedCode& joined, const ProgramCodes& programs,
                                     std::int32_t first, const perf::CpuSlots& slots,
                                     const perf::TimeConversion& clock) {
  assert(programs.contains(first));
  std::vector<CodeChange> changes;
  std::uint64_t begin = 0;
  for (const perf::CpuSlot& slot : slots.slots) {
    // What lies between two slots belongs to the later one.
    const std::uint64_t end = slot.end_ns == ~0ull ? ~0ull : clock.to_tsc(slot.end_ns + 1);
    const std::int32_t pid = programs.contains(slot.thread.pid) ? slot.thread.pid : first;
    const Epoch base = joined.bases.at(pid);
    const std::span<const EpochBegin> begins = programs.at(pid).begins;
    auto later = std::upper_bound(
        begins.begin(), begins.end(), begin,
        [](std::uint64_t time, const EpochBegin& began) { return time < began.time; });
    Epoch epoch = base;
    if (later != begins.begin()) epoch.value += std::prev(later)->epoch.value;
    if (changes.empty() || changes.back().epoch != epoch) changes.push_back({0, begin, epoch});
    for (; later != begins.end() && later->time < end; ++later)
      changes.push_back({0, later->time, {base.value + later->epoch.value}});
    begin = end;
  }
  return changes;
}

std::map<ThreadId, std::vector<CpuPiece>> pieces_by_thread(std::span<const CpuTrace> cpus,
                                                           const perf::TimeConversion& clock) {
  std::map<ThreadId, std::vector<CpuPiece>> all;
  std::vector<std::uint64_t> nobodys_ns;  // when something was traced that is no known thread's
  for (const CpuTrace& cpu : cpus) {
    std::map<const perf::CpuSlot*, std::vector<StretchLog::Stretch>> by_slot;
    for (const StretchLog::Stretch& stretch : cpu.log.stretches()) {
      const std::uint64_t time_ns = stretch.time == 0 ? 0 : clock.to_ns(stretch.time);
      if (time_ns == 0 || time_ns < cpu.begin_ns) continue;  // told as lost
      if (const perf::CpuSlot* slot = cpu.slots.at(time_ns)) by_slot[slot].push_back(stretch);
    }
    for (const perf::CpuSlot& slot : cpu.slots.slots) {
      auto traced = by_slot.find(&slot);
      if (slot.thread.tid <= 0) {
        if (slot.thread.tid < 0 && traced != by_slot.end())
          nobodys_ns.push_back(clock.to_ns(traced->second.front().time));
        continue;
      }
      if (traced != by_slot.end())
        all[slot.thread].push_back({&cpu, slot, std::move(traced->second)});
      else if (slot.begin_ns < cpu.begin_ns)
        all[slot.thread].push_back({&cpu, slot, {}});
    }
  }
  // A slot whose begin is not told seems to begin too early.
  auto begin_ns = [&](const CpuPiece& piece) {
    const auto& traced = piece.stretches;
    return traced.empty() ? piece.slot.begin_ns : clock.to_ns(traced.front().time);
  };
  std::sort(nobodys_ns.begin(), nobodys_ns.end());
  for (auto& [thread, pieces] : all) {
    std::stable_sort(pieces.begin(), pieces.end(), [&](const CpuPiece& a, const CpuPiece& b) {
      return begin_ns(a) < begin_ns(b);
    });
    auto passed = nobodys_ns.begin();
    for (CpuPiece& piece : pieces) {
      auto later = std::upper_bound(passed, nobodys_ns.end(), begin_ns(piece));
      piece.lost_before = std::exchange(passed, later) != later;
    }
  }
  return all;
}

bool play_pieces(std::span<const CpuPiece> pieces, Tail& tail) {
  bool began = false, whole = true;
  for (const CpuPiece& piece : pieces) {
    if (piece.slot.begin_ns < piece.cpu->begin_ns) {
      // What the CPU did in this slot, or at its begin, was lost.
      whole = false;
      if (began) tail.lost(GapCause::kOverwritten);
    }
    if (piece.lost_before && began) tail.lost(GapCause::kLost);
    for (const StretchLog::Stretch& stretch : piece.stretches) {
      piece.cpu->log.play(stretch, tail);
      began = true;
    }
  }
  return whole;
}

}  // namespace tailtrace::pt
