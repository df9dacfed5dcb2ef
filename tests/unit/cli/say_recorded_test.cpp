#include "plugin/cli/say_recorded.h"

#include <gtest/gtest.h>

namespace tailtrace {
namespace {

TEST(ShellWord, IsQuotedWhereAShellWouldTakeItForSomethingElse) {
  EXPECT_EQ(shell_word("/var/tmp/program-1.2_3"), "/var/tmp/program-1.2_3");
  EXPECT_EQ(shell_word("my session"), "'my session'");
  EXPECT_EQ(shell_word("it's $HOME"), "'it'\\''s $HOME'");
  EXPECT_EQ(shell_word("caf\xe9"), "'caf\xe9'");
  EXPECT_EQ(shell_word("~"), "'~'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace tailtrace
