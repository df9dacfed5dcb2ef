// A program recorded under qemu to its end, and its histories held against what single-stepping
// saw.
//
// Threading: functions; each runs its own process.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "decoder/history/snapshot.h"
#include "plugin/engines/qemu/qemu_process.h"
#include "tests/support/qemu_steps.h"

namespace tailtrace {

using Addresses = std::vector<std::uint64_t>;

// What the programs of these tests get, recorded or stepped.
extern const std::vector<std::string> kTestEnvironment;

// A program of tests/programs.
std::string built_program(const std::string& name);

// How a program is recorded so that another run of it does the same.
QemuOptions test_options(const std::vector<std::string>& program);

struct RecordedThread {
  RingState state;
  ThreadSnapshot snapshot;
};
struct RecordedProcess {
  std::string folder;
  int pid = 0;
  unsigned program_index = 0;
  std::vector<RecordedThread> threads;
};
struct Recording {
  std::vector<RecordedProcess> processes;  // in order of appearance
  int status = 0;                          // wait status of the first
};

// Runs the program to its end, with its output thrown away, and takes everything recorded.
Result<Recording> record_to_end(QemuOptions options);

// The same program by single steps and recorded.
struct SteppedAndRecorded {
  QemuSteps steps;
  Recording recording;
};
// Both ended alike. Errors: of either.
Result<SteppedAndRecorded> step_and_record(const std::vector<std::string>& program);

// Iterations of a string instruction are one instruction in a history.
Addresses without_iterations(const Addresses& steps, const CodeImage& code);

testing::AssertionResult is_equal(const Addresses& history, const Addresses& truth);

// Where qemu-user 7.2 puts a position-independent program; checked against its entry point, which
// must have been executed. The address of one of its functions.
Result<std::uint64_t> address_of(const std::string& program, const std::string& function);

}  // namespace tailtrace
