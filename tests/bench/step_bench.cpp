// What a single step of a traced program takes, on whatever processors the kernel chooses and on
// one (plugin/engines/step/one_cpu.h), in turns. Wall time, medians of several rounds; on an idle
// machine, for what is measured is how long an idle processor takes to wake up.
//
//   step_bench [STEPS]              of each round; 20000 by default
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "plugin/engines/step/one_cpu.h"
#include "tests/support/child.h"
#include "tests/support/usage.h"

namespace tailtrace {
namespace {

constexpr int kRounds = 5;

void spin() {
  for (;;) __asm__ volatile("");
}

double seconds_of(Child& child, int steps, OneCpu* one_cpu) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < steps; ++i) {
    if (one_cpu != nullptr) one_cpu->step({child.pid(), child.pid()}, std::nullopt);
    child.step();
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void measure(int steps) {
  Child child({spin});
  std::vector<double> anywhere, on_one;
  for (int round = 0; round < kRounds; ++round) {
    anywhere.push_back(seconds_of(child, steps, nullptr));
    OneCpu one_cpu;
    on_one.push_back(seconds_of(child, steps, &one_cpu));
  }
  const double before = median(anywhere) / steps * 1e6, now = median(on_one) / steps * 1e6;
  fmt::print("a step {:6.1f} us  on one processor {:6.1f} us  {:4.2f}x\n", before, now,
             before / now);
}

}  // namespace
}  // namespace tailtrace

int main(int argc, char** argv) {
  if (tailtrace::shows_usage(argc, argv, "step_bench [STEPS]")) return 0;
  tailtrace::measure(argc > 1 ? std::max(1, std::atoi(argv[1])) : 20000);
}
