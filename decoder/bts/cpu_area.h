// What the threads that took turns on a CPU wrote into one AUX area of intel_bts. Its records say
// neither whose they are nor when, but where the kernel does not overwrite the area by itself it
// tells of every stretch: where it lies, counted from the beginning, whose it is, and when it was
// written.
//
// Threading: pure functions over bytes; results own what they hold.
#pragma once

#include <span>

#include "decoder/bts/cpu_branches.h"

namespace tailtrace::bts {

struct CpuArea {
  ByteSpan bytes;
  std::uint64_t head = 0;       // AuxHead::kAbsolute
  bool told_from_begin = true;  // no record of what the kernel told was overwritten
};

// `told` are the AUX records, with TID and TIME at their ends, by time; `format` is theirs.
// Errors: kBadInput for a record that cannot be read, or one of what is not in the area.
Result<CpuBranches> read_cpu_area(const CpuArea& area, const perf::RecordList& told,
                                  const perf::RecordFormat& format);

// Nothing was recorded on the CPU then.
struct Pause {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = ~0ull;

  friend bool operator==(const Pause&, const Pause&) = default;
};

// Whoever had the CPU in one of the pauses has a loss. `slots` are those of that CPU, and
// `known_from_ns` is where they begin.
void note_pauses(CpuBranches& cpu, const perf::CpuSlots& slots, std::uint64_t known_from_ns,
                 std::span<const Pause> pauses);

}  // namespace tailtrace::bts
