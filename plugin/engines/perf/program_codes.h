// ProgramCodes: the code of a process and of those that it makes, each by time, as the kernel tells
// of what they map.
//
// Threading: one thread at a time.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "decoder/pt/segments/cpu_trace.h"
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

  // All of them, for a decoder; refers to this.
  pt::ProgramCodes all() const;
  std::int32_t first() const { return first_; }

 private:
  std::int32_t first_;
  bool children_;
  std::map<std::int32_t, ProcessCode> codes_;
};

}  // namespace tailtrace::perf
