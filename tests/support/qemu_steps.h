// What a program executes, by single-stepping it under qemu without our plugin: qemu is told to
// translate each instruction alone and to log each one it is about to execute (its options
// -singlestep and -d exec,nochain).
//
// Threading: functions; each runs its own process.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "decoder/base/result.h"

namespace tailtrace {

struct QemuSteps {
  // By qemu's number of the vCPU, which is used again when a thread has ended: addresses in order.
  // Each iteration of a REP string instruction is listed.
  std::map<unsigned, std::vector<std::uint64_t>> threads;
  // What forked children executed in the same program, each one's threads together; by number.
  std::map<int, std::vector<std::uint64_t>> children;
  int status = 0;  // wait status
};

// Runs a program, an absolute path and its arguments, to its end, with exactly this environment;
// its output is thrown away.
Result<QemuSteps> step_under_qemu(const std::vector<std::string>& program,
                                  std::vector<std::string> environment);

}  // namespace tailtrace
