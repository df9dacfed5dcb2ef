#include "plugin/cli/gdb_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tailtrace {
namespace {

using testing::ElementsAre;

GdbStart a_gdb_start() {
  GdbStart start;
  start.gdb = "/usr/bin/gdb";
  start.target = "/run/x y/gdb";
  start.program = "-odd name";
  start.to_main = "/run/x y/to-main.gdb";
  start.options = {"-ex", "break f"};
  return start;
}

// The commands in the order in which GDB executes them.
std::vector<std::string> commands(const GdbStart& start) {
  std::vector<std::string> words = gdb_command_line(start), found;
  for (std::size_t i = 0; i + 1 < words.size(); ++i)
    if (words[i] == "-ex" || words[i] == "-x") found.push_back(words[i + 1]);
  return found;
}

TEST(GdbStart, ConnectsAndRecordsBeforeItRunsToMainAndTheUsersCommandsComeLast) {
  EXPECT_THAT(commands(a_gdb_start()),
              ElementsAre("target remote /run/x y/gdb", "record btrace pt", "/run/x y/to-main.gdb",
                          "set breakpoint pending auto", "break f"));
}

TEST(GdbStart, RecordsFromMainWhereEachInstructionIsStepped) {
  GdbStart start = a_gdb_start();
  start.record_from_start = false;
  EXPECT_THAT(commands(start),
              ElementsAre("target remote /run/x y/gdb", "/run/x y/to-main.gdb", "record btrace pt",
                          "set breakpoint pending auto", "break f"));
}

TEST(GdbStart, ProgramWithoutMainStaysAtItsFirstInstruction) {
  GdbStart start = a_gdb_start();
  start.to_main.clear();
  EXPECT_THAT(commands(start),
              ElementsAre("target remote /run/x y/gdb", "record btrace pt",
                          testing::StartsWith("echo The program has no symbol `main`"),
                          "set breakpoint pending auto", "break f"));
}

TEST(GdbStart, ProgramWithADashIsNoOption) {
  EXPECT_EQ(gdb_command_line(a_gdb_start()).back(), "--se=-odd name");
}

}  // namespace
}  // namespace tailtrace
