// One thread's history, gathered out of what several CPUs sampled of its branches.
//
// Threading: pure functions over values.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "decoder/bts/cpu_branches.h"
#include "decoder/history/snapshot.h"
#include "plugin/engines/perf/process_code.h"

namespace tailtrace::perf {

struct BranchesOfThread {
  ThreadId thread;
  std::span<const bts::Share> shares;
  const ProcessCode* code = nullptr;
  std::optional<Address> start;  // where recording began, if it did with the thread there
  std::optional<Address> stop;   // where it stands now, if it does
  // Of stacks: the most branches between two of them. 0: they are all branches.
  std::size_t most_between_stacks = 0;
};

// Turns a batch's time into that of the code's epochs; the greatest where nobody can: then all is
// read with the newest code.
using TscOf = std::function<std::uint64_t(std::uint64_t time_ns)>;

ThreadSnapshot gather_branches(const BranchesOfThread& of, const TscOf& tsc_of,
                               std::uint64_t limit);

}  // namespace tailtrace::perf
