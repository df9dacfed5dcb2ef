// A row of steps: the server below, told to step one thread alone, makes as many as are asked for
// here before it tells of one. It would be asked for each, and tell of each, which takes longer
// than the step.
//
// The proxy asks before it sends the request to step, and takes where the thread was when the next
// stop reply has come; in between the library in the server (row_of_steps.h) has it. So neither
// waits for the other here.
#pragma once

#include <atomic>
#include <cstdint>

namespace tailtrace {

// The environment variable that has the number of the descriptor of the shared memory.
constexpr const char* kStepRowVariable = "TAILTRACE_STEP_ROW";

struct StepRowMemory {
  static constexpr std::uint32_t kMost_steps = 256;
  static constexpr std::uint32_t kMost_ranges = 256;
  struct Range {
    std::uint64_t begin, end;  // begin <= pc < end
  };

  std::atomic<std::int32_t> thread;  // that is to make a row; 0: none is
  std::uint32_t most_steps;          // of it, the last one left out
  Range within;                      // it goes on while the thread is there, and in one of these:
  std::uint32_t ends_at_loops;       // 1: also before a conditional branch that may lead back
  std::uint32_t ranges;
  Range code[kMost_ranges];          // by address
  std::atomic<std::uint32_t> steps;  // made, the last one left out
  std::uint64_t pcs[kMost_steps];    // where the thread was behind each of them
};

}  // namespace tailtrace
