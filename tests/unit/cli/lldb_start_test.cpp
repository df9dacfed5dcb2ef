#include "plugin/cli/lldb_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tailtrace {
namespace {

using testing::ElementsAre;

LldbStart an_lldb_start() {
  LldbStart start;
  start.lldb = "/usr/bin/lldb-22";
  start.socket = "/run/x/socket";
  start.program = "/a \"b\"/-odd";
  start.terminal_script = "/run/x/one_terminal.py";
  start.options = {"-o", "breakpoint set -n f"};
  return start;
}

// The commands in the order in which LLDB executes them.
std::vector<std::string> commands(const LldbStart& start) {
  std::vector<std::string> words = lldb_command_line(start), found;
  for (std::size_t i = 0; i + 1 < words.size(); ++i)
    if (words[i] == "-o" || words[i] == "-O") found.push_back(words[i + 1]);
  return found;
}

TEST(LldbStart, ConnectsAndRecordsBeforeItRunsToMainAndTheUsersCommandsComeBehind) {
  EXPECT_THAT(commands(an_lldb_start()),
              ElementsAre("process connect --plugin gdb-remote unix-connect:///run/x/socket",
                          "process trace start",
                          "breakpoint set --one-shot true --name main --shlib \"-odd\"",
                          "process continue", "command script import \"/run/x/one_terminal.py\"",
                          "breakpoint set -n f", "script one_terminal.wait_again(lldb.debugger)"));
}

TEST(LldbStart, RecordsFromMainWhereEachInstructionIsStepped) {
  LldbStart start = an_lldb_start();
  start.record_from_start = false;
  auto found = commands(start);
  EXPECT_EQ(std::ranges::find(found, "process trace start") -
                std::ranges::find(found, "process continue"),
            1);
}

TEST(LldbStart, ProgramWithoutMainStaysAtItsFirstInstruction) {
  LldbStart start = an_lldb_start();
  start.has_main = false;
  EXPECT_THAT(commands(start), testing::Not(testing::Contains("process continue")));
}

// Ours are quiet, and LLDB would be quiet in files, too.
TEST(LldbStart, CommandsOfTheUsersFilesAreShown) {
  LldbStart start = an_lldb_start();
  start.options = {"-b", "-s", "a b.lldb", "--source-before-file", "before"};
  EXPECT_THAT(lldb_command_line(start),
              testing::IsSupersetOf({"-b", "command source -s false \"a b.lldb\"",
                                     "command source -s false \"before\""}));
  EXPECT_THAT(commands(start), testing::Contains("command source -s false \"before\""));
}

// LLDB would take qemu for the program.
TEST(LldbStart, ProgramUnderQemuIsOneOfAnotherMachine) {
  LldbStart start = an_lldb_start();
  start.local_process = false;
  EXPECT_EQ(commands(start).front(), "platform select remote-linux --sysroot /");
}

}  // namespace
}  // namespace tailtrace
