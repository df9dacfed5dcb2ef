#include "tests/guest/workload.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tailtrace {
namespace {

volatile std::uint64_t sink;

std::uint64_t add(std::uint64_t x) { return x + 1; }
std::uint64_t multiply(std::uint64_t x) { return x * 3; }
std::uint64_t exclusive_or(std::uint64_t x) { return x ^ 0x55; }
std::uint64_t (*volatile operations[])(std::uint64_t) = {add, multiply, exclusive_or};

void on_signal(int) { sink = sink + 7; }

}  // namespace

// A section of its own, so that a filter can name it whole.
__attribute__((noinline, section("traced"))) std::uint64_t fibonacci(unsigned n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

void work(unsigned rounds, Workload workload) {
  if (workload.signals) ::signal(SIGUSR1, on_signal);
  for (unsigned i = 0; i < rounds; ++i) {
    sink = sink + fibonacci(6 + i % 3);
    sink = operations[sink % 3](sink);
    if (workload.system_calls && i % 16 == 0)
      sink = sink + static_cast<std::uint64_t>(::syscall(SYS_getppid));
    if (workload.signals && i % 64 == 5) ::raise(SIGUSR1);
    if ((sink & 1) != 0)
      sink = sink + i;
    else
      sink = sink ^ (i << 3);
  }
}

}  // namespace tailtrace
