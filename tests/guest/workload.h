// What is traced in the guest: direct and indirect calls, returns, loops, system calls, and signals
// with a handler.
//
// Threading: runs in a child process of its own.
#pragma once

#include <cstdint>

namespace tailtrace {

struct Workload {
  bool signals = true;
  bool system_calls = true;
};

// So many rounds of it.
void work(unsigned rounds, Workload workload = {});

// The function that work() spends most of its time in; it lies in a section named `traced`.
std::uint64_t fibonacci(unsigned n);

}  // namespace tailtrace
