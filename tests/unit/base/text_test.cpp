#include "decoder/base/text.h"

#include <gtest/gtest.h>

#include "decoder/base/result.h"

namespace tailtrace {
namespace {

TEST(Printable, LeavesNothingThatATerminalObeys) {
  EXPECT_EQ(printable("evil\033[2J\a name\r\n\x7f"), "evil?[2J? name???");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a?b");
  EXPECT_EQ(printable("one\xc2\x9b"
                      "2J"),
            "one?2J");
}

TEST(Printable, LinesHaveNoTabs) {
  EXPECT_EQ(printable_line("\tint\ta;\r"), "        int     a;?");
}

TEST(Printable, SoAreErrors) {
  const Error error{ErrorCode::kSystem, "cannot open a\033[2J", "b\n  fix:  c", "\a", "\x7f"};
  EXPECT_EQ(error.to_string(),
            "error: cannot open a?[2J\n  why:  b?  fix:  c\n  fix:  ?\n  now:  ?");
  EXPECT_EQ(error.to_line(), "cannot open a?[2J: b?  fix:  c; fix: ?");
}

TEST(Printable, LeavesTextAsItIs) {
  for (std::string_view text : {"", "main", "std::vector<int>::~vector()", "Gr\xc3\xbc\xc3\x9f",
                                "\xc2\xa0", "\xc2", "\xff"})
    EXPECT_EQ(printable(text), text);
}

TEST(ShellWord, IsQuotedWhereAShellWouldTakeItForSomethingElse) {
  EXPECT_EQ(shell_word("/var/tmp/program-1.2_3"), "/var/tmp/program-1.2_3");
  EXPECT_EQ(shell_word("my session"), "'my session'");
  EXPECT_EQ(shell_word("it's $HOME"), "'it'\\''s $HOME'");
  EXPECT_EQ(shell_word("caf\xe9"), "'caf\xe9'");
  EXPECT_EQ(shell_word("~"), "'~'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(ShellQuoted, IsInQuotesAlways) {
  EXPECT_EQ(shell_quoted("plain"), "'plain'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
}

}  // namespace
}  // namespace tailtrace
