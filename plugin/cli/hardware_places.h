// HardwarePlaces: the places that a recording by hardware is asked for, as its configuration has
// them: those of libraries that the program loads later come into it then.
//
// Threading: the program's tracer.
#pragma once

#include <string>
#include <vector>

#include "plugin/cli/awaited_places.h"
#include "plugin/cli/record_by_hardware.h"
#include "plugin/engines/perf/thread_recorder.h"

namespace tailtrace {

class HardwarePlaces {
 public:
  HardwarePlaces(const HardwareRecording& recording, std::int32_t pid);

  // Puts them into it. The program stands at its first instruction, and where it begins to use its
  // libraries then, if names of theirs are asked for. Errors: kUsage.
  Result<void> put_into(perf::PerfConfig& config, const WatchedProgram& program);

  // A thread stands where the dynamic linker calls: what has come is put into it. Errors: what came
  // and is no place; the rest is there all the same.
  Result<void> loads(perf::PerfConfig& config);

  AwaitedPlaces& awaited() { return awaited_; }

 private:
  enum class Use : std::uint8_t { kFilter, kWatch, kResume, kPause };
  struct Asked {
    Use use;
    std::string place;
  };
  Result<void> put(const Asked& asked, const WatchedProgram& program,
                   perf::PerfConfig& config) const;

  std::vector<Asked> asked_;
  bool reads_;
  AwaitedPlaces awaited_;
};

}  // namespace tailtrace
