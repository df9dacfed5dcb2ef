// OneCpu: has a program that is stepped, and those who step it, run on one processor while steps
// follow each other. They take turns, one step of each, so a second processor is of no use: it
// falls asleep between any two of them, and to wake one takes longer than the step, most of all in
// a virtual machine.
//
// What the program may run on is its own business: it must be as it was while the program asks for
// it or makes threads and processes, which inherit it, and while a debugger looks.
//
// Threading: one thread at a time, which takes part.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "decoder/base/types.h"

namespace tailtrace {

class OneCpu {
 public:
  // `tracer` is the process that makes the steps; -1: this one, or nobody knows.
  explicit OneCpu(pid_t tracer = -1) : tracer_(tracer) {}
  ~OneCpu() { leave(); }
  OneCpu(const OneCpu&) = delete;
  OneCpu& operator=(const OneCpu&) = delete;

  // A thread is about to make so many more steps, or has made them. The first makes that system
  // call; nothing: none does.
  void step(ThreadId thread, std::optional<std::uint64_t> call, std::size_t steps = 1);
  // All may run where they could before.
  void leave();

 private:
  bool bind(pid_t tid);
  void enter(std::int32_t pid);

  pid_t tracer_;
  std::size_t steps_ = 0;          // since it was entered or left
  std::set<std::int32_t> asking_;  // threads in calls that are to see where they could run
  cpu_set_t one_{};
  std::vector<std::pair<pid_t, cpu_set_t>> bound_;  // and where they could run
};

}  // namespace tailtrace
