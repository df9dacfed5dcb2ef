// Verdict: for each engine, whether it works on a machine, why not, and what to do about it. Pure
// judgement over what machine.h read and trials.h tried.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plugin/engines/machine.h"
#include "plugin/provider/trials.h"

namespace tailtrace {

struct Verdict {
  std::string engine;  // "pt", "bts", "lbr", "qemu", "step"
  bool works = false;
  std::string summary;  // what it does here, or what is in its way: one line
  std::string why;      // as measured; empty when it works
  std::string fix;      // a command where there is one; may be empty
};

// Best first, the order in which `auto` chooses.
std::vector<Verdict> judge(const Machine& machine, const Trials& trials);

// The engine that `auto` takes for a program it starts; null when none works.
const Verdict* auto_choice(const std::vector<Verdict>& verdicts);

// What is in the way of other things than recording: attaching to running processes, large
// buffers, a debugger that is not there. Their `engine` is the subject.
std::vector<Verdict> judge_surroundings(const Machine& machine, const Trials& trials);

}  // namespace tailtrace
