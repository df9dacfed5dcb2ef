// A program recorded to its end by the processor, without a debugger:
// `tailtrace run --no-debugger --engine=pt|bts|lbr`.
//
// Threading: one thread; waits for the program and its threads.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "decoder/base/result.h"
#include "plugin/server/below/server_options.h"

namespace tailtrace {

struct HardwareRecording {
  bool by_cpu = false;    // a buffer for each CPU, not for each thread
  bool children = false;  // processes that it makes, too; by CPU only
  bool lossless = false;  // everything, not the newest part; Intel PT and BTS only
  // Hardware breakpoints, as resolve_watch() has them; thread by thread only. Hits of the first are
  // put into the history; the others let the trace go on, and pause it (Intel PT, Linux 6.13).
  std::vector<std::string> watches;
  bool reads = false;
  std::string resume_at, pause_at;
  bool kernel = false;  // the kernel's code as well; Intel PT, thread by thread
  // Of Intel PT: as apply_pt_settings() and resolve_filter() have them.
  std::string pt_settings;
  std::vector<std::string> filters;
  bool is_of_pt() const { return !pt_settings.empty() || !filters.empty(); }
  bool any_breakpoints() const {
    return !watches.empty() || !resume_at.empty() || !pause_at.empty();
  }
  bool any() const {
    return by_cpu || children || lossless || kernel || any_breakpoints() || is_of_pt();
  }
};

// Whether the recorder can be had so. Errors: kUsage.
Result<void> check(const HardwareRecording& recording, EngineChoice engine);

// Runs the program of `options` and leaves a bundle behind: in `keep_folder`, or else in a new
// folder under $XDG_STATE_HOME/tailtrace; says on `err` where, and what turned out otherwise than
// asked. Returns the program's exit status, 128 + N if signal N ended it.
// Errors: the program cannot be started, the hardware does not record here; kUsage.
Result<int> record_by_hardware(const ServeOptions& options, const HardwareRecording& recording,
                               std::FILE* err);

}  // namespace tailtrace
