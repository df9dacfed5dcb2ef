// The stepper of the truth tests has its own truth: qemu's log, line by line.
#include "tests/support/qemu_steps.h"

#include <gtest/gtest.h>

namespace tailtrace {
namespace {

TEST(QemuSteps, AnInstructionThatWasTakenBackIsNotExecutedTwice) {
  auto steps = read_step_log(
      "Trace 1: 0x7f4af832a740 [0000000000000000/0000004000001175/1040c0b3/00080201] collatz\n"
      "Trace 1: 0x7f4af832a8c0 [0000000000000000/0000004000001177/1040c0b3/00080201] collatz\n"
      "Stopped execution of TB chain before 0x7f4af832a8c0 [0000004000001177] collatz\n"
      "Trace 1: 0x7f4af832a8c0 [0000000000000000/0000004000001177/1040c0b3/00080201] collatz\n"
      "Trace 1: 0x7f4af832aa00 [0000000000000000/0000004000001179/1040c0b3/00080201] collatz\n");
  ASSERT_TRUE(steps);
  EXPECT_EQ(*steps, (StepAddresses{0x4000001175, 0x4000001177, 0x4000001179}));
}

TEST(QemuSteps, AnotherInstructionThanTheNewestIsNotTakenBack) {
  EXPECT_FALSE(read_step_log("Stopped execution of TB chain before 0x7f4a [0000004000001177] f\n"));
}

TEST(QemuSteps, OtherLinesAndAnUnfinishedOneAreNoSteps) {
  auto steps = read_step_log("warning: TCG does not support something\nTrace 0: 0x7f4");
  ASSERT_TRUE(steps);
  EXPECT_TRUE(steps->empty());
}

}  // namespace
}  // namespace tailtrace
