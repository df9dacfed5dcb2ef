#include "plugin/cli/manual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/cli/commands.h"
#include "plugin/cli/help.h"

namespace tailtrace {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<Command> dangerous_table() {
  return {{
      .name = "quote",
      .summary = "Don't \\fB break",
      .usage = "--first=WORD",
      .examples = {{".tailtrace quote 'x'", "a line that begins like a request"}},
      .define = [](CLI::App& app) -> RunCommand {
        auto first = std::make_shared<std::string>();
        app.add_option("--first", *first, "it's [odd]: a 'text'")->type_name("a|b");
        return [first](const Invocation&) -> Result<int> { return 0; };
      },
      .take_program = {},
      .details = {},
  }};
}

TEST(ManPage, NamesEveryVerbAndOption) {
  std::string page = man_page(all_commands());
  for (const Command& command : all_commands()) {
    EXPECT_THAT(page, HasSubstr(".SS \\fB" + std::string(command.name) + "\\fR\n"));
    for (const OptionHelp& option : options_of(command)) {
      if (option.positional) continue;
      std::string name = option.names.back();
      for (std::size_t at = 0; (at = name.find('-', at)) != std::string::npos; at += 2)
        name.replace(at, 1, "\\-");
      EXPECT_THAT(page, HasSubstr(name)) << command.name;
    }
  }
}

TEST(ManPage, NamesWhatIsReadFromTheEnvironment) {
  std::string page = man_page(all_commands());
  for (const char* name :
       {"DEBUGINFOD_URLS", "NO_COLOR", "PATH", "TAILTRACE_QEMU", "TAILTRACE_QEMU_PLUGIN",
        "TAILTRACE_SESSIONS", "TERM", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"})
    EXPECT_THAT(page, HasSubstr("\\fB" + std::string(name) + "\\fR"));
}

TEST(ManPage, TextIsNeverTakenForRequests) {
  std::string page = man_page(dangerous_table());
  EXPECT_THAT(page, HasSubstr("Don\\(aqt \\efB break"));
  EXPECT_THAT(page, HasSubstr("\n\\&.tailtrace quote \\(aqx\\(aq\n"));
  EXPECT_THAT(page, Not(HasSubstr("\n.tailtrace")));
}

TEST(Completions, TextWithQuotesStaysOneWord) {
  EXPECT_THAT(zsh_completion(dangerous_table()), HasSubstr("it'\\''s  odd   a '\\''text'\\''"));
  EXPECT_THAT(fish_completion(dangerous_table()), HasSubstr("-d 'Don'\\''t \\fB break'"));
}

}  // namespace
}  // namespace tailtrace
