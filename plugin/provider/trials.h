// Trials: what this machine really lets us do, found out by doing it once: opening perf events,
// stepping a child, running the tools.
//
// Threading: try_machine() forks; call it while the process has one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decoder/base/result.h"
#include "plugin/engines/machine.h"

namespace tailtrace {

// A system call that was tried. `error_number` 0: it worked.
struct Trial {
  int error_number = 0;
  bool ok() const { return error_number == 0; }
};

// A perf event that was opened and mapped as an engine does it, in the engine's own words.
struct PerfTrial {
  std::optional<Error> refusal;
  bool ok() const { return !refusal; }
};

struct Tool {
  std::string name;     // "gdb"
  std::string path;     // empty: not found
  std::string version;  // "13.1"; empty: unknown
};

struct Trials {
  PerfTrial perf_software;  // an event without hardware: whether perf events are allowed at all
  PerfTrial pt, bts, lbr;
  Trial ptrace_step;                      // stepping a child of ours once
  std::int64_t memlock_limit_bytes = -1;  // RLIMIT_MEMLOCK; -1: none

  Tool gdb, gdbserver, lldb, qemu;
  Error no_lldb;  // why there is none that reads traces, where lldb.path is empty
  bool qemu_has_plugins = false;
  std::string qemu_records;  // why a program could not be recorded in it; empty: it could
};

Trials try_machine();

// The first number with a point in what a tool says of its version: "GNU gdb (Debian 13.1-3) 13.1"
// is 13.1, "qemu-x86_64 version 7.2.22 (Debian ...)" is 7.2.22.
std::string version_in(const std::string& text);

}  // namespace tailtrace
