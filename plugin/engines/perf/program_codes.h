// ProgramCodes: the code of a process and of those that it makes, each by time, as the kernel tells
// of what they map; and all of them as one image, for a trace of CPUs that they shared.
//
// Threading: one thread at a time.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "decoder/perf/clock.h"
#include "decoder/perf/cpu_slots.h"
#include "decoder/pt/decoder.h"
#include "plugin/engines/perf/process_code.h"

namespace tailtrace::perf {

class ProgramCodes {
 public:
  // `children`: processes that are made belong to it.
  ProgramCodes(std::int32_t pid, bool children);

  // What the kernel told, with its time of the hardware's clock.
  struct Told {
    std::uint64_t time = 0;
    ParsedRecord record;
  };
  // Looks at all processes at the time `now`, with what was told since the last look.
  void update(std::vector<Told> told, std::uint64_t now);

  // The code of a process; the first one's where it is not known.
  const ProcessCode& of(std::int32_t pid) const;

  // One image in which every process has epochs of its own, from `bases` on.
  struct Joined {
    CodeImage image;
    std::map<std::int32_t, Epoch> bases;
  };
  Joined joined() const;

  // For a decoder of what a CPU did: in each slot the epochs of the process that had it.
  std::vector<pt::CodeChange> changes(const Joined& joined, const CpuSlots& slots,
                                      const TimeConversion& clock) const;

 private:
  std::int32_t first_;
  bool children_;
  std::map<std::int32_t, ProcessCode> codes_;
};

}  // namespace tailtrace::perf
