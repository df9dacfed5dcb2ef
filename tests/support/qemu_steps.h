// What a program executes, by single-stepping it under qemu without our plugin: qemu is told to
// translate each instruction alone and to log each one it is about to execute, each thread in a
// file of its own (its options -singlestep and -d exec,nochain,tid).
//
// Threading: functions; each runs its own process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/base/result.h"

namespace tailtrace {

using StepAddresses = std::vector<std::uint64_t>;

struct QemuSteps {
  // Addresses in order, of the main thread first. Each iteration of a REP string instruction is
  // listed.
  std::vector<StepAddresses> threads;
  // What forked children executed in the same program, in the order of their birth. REQUIRES:
  // they have no further threads.
  std::vector<StepAddresses> children;
  int status = 0;  // wait status
};

// Runs a program, an absolute path and its arguments, to its end, with exactly this environment;
// its output is thrown away.
Result<QemuSteps> step_under_qemu(const std::vector<std::string>& program,
                                  std::vector<std::string> environment);

// One thread's log. Errors: one that contradicts itself.
Result<StepAddresses> read_step_log(std::string_view log);

}  // namespace tailtrace
