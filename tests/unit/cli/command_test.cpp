#include "plugin/cli/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <set>
#include <stdexcept>

#include "plugin/cli/commands.h"
#include "plugin/cli/help.h"
#include "plugin/cli/output_options.h"
#include "tests/support/command_outcome.h"

namespace tailtrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Command greet_command() {
  return {
      .name = "greet",
      .summary = "Greet somebody",
      .usage = "[--times=N] NAME",
      .examples = {{"tailtrace greet Ada", "once"}},
      .elsewhere = {"salute"},
      .define = [](CLI::App& app) -> RunCommand {
        auto times = std::make_shared<int>(1);
        auto name = std::make_shared<std::string>();
        auto output = add_output_options(app);
        app.add_option("--times", *times, "how often")->type_name("N");
        app.add_option("NAME", *name, "whom")->required();
        return [=](const Invocation& invocation) -> Result<int> {
          if (*times < 0)
            return fail(ErrorCode::kBadInput, "cannot greet", "a time is negative", "--times=1");
          for (int i = 0; i < *times; ++i)
            std::fprintf(invocation.out, "hello %s %d\n", name->c_str(),
                         static_cast<int>(output->json));
          return kExitDone;
        };
      },
      .take_program = {},
      .details = {},
  };
}

Command launch_command() {
  return {
      .name = "launch",
      .summary = "Show what would be launched",
      .usage = "-- PROGRAM",
      .examples = {},
      .define = [](CLI::App& app) -> RunCommand {
        app.allow_extras();
        return [](const Invocation& invocation) -> Result<int> {
          for (const auto& word : invocation.extras)
            std::fprintf(invocation.out, "extra %s\n", word.c_str());
          for (const auto& word : invocation.program)
            std::fprintf(invocation.out, "program %s\n", word.c_str());
          return 42;
        };
      },
      .take_program = take_behind_dashes,
      .details = {},
  };
}

std::vector<Command> table() { return {greet_command(), launch_command()}; }

TEST(CommandTest, RunsTheVerbWithItsOptions) {
  CommandOutcome outcome = outcome_of({"greet", "--times=2", "Ada"}, table());
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, "hello Ada 0\nhello Ada 0\n");
  EXPECT_EQ(outcome.err, "");
}

TEST(CommandTest, ExitStatusIsTheCommandsOwn) {
  EXPECT_EQ(outcome_of({"launch"}, table()).status, 42);
}

TEST(CommandTest, ErrorIsShownInTheAgreedShapeAndItsCodeIsTheExitStatus) {
  CommandOutcome outcome = outcome_of({"greet", "Ada", "--times=-1"}, table());
  EXPECT_EQ(outcome.status, 5);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "error: cannot greet\n  why:  a time is negative\n  fix:  --times=1\n");
}

TEST(CommandTest, ProgramBehindDashesKeepsItsOwnOptions) {
  CommandOutcome outcome =
      outcome_of({"launch", "-ex", "info record", "--", "prog", "--help", "--", "x"}, table());
  EXPECT_EQ(outcome.out,
            "extra -ex\nextra info record\n"
            "program prog\nprogram --help\nprogram --\nprogram x\n");
}

TEST(CommandTest, ArgumentsThatCannotBeParsedAreUsageErrorsWithAFix) {
  for (const std::vector<std::string>& args : {std::vector<std::string>{"greet"},
                                               {"greet", "--nonsense", "x"},
                                               {"greet", "--times=", "x"},
                                               {"greet", "--times=x", "y"},
                                               {"greet", "a", "b"},
                                               {"greet", "--json=what", "a"},
                                               {"greet", "--color=blue", "a"}}) {
    CommandOutcome outcome = outcome_of(args, table());
    EXPECT_EQ(outcome.status, 2);
    EXPECT_THAT(outcome.err, StartsWith("error: cannot understand the arguments of tailtrace greet"
                                        "\n  why:  "));
    EXPECT_THAT(outcome.err, HasSubstr("\n  fix:  tailtrace help greet\n"));
  }
}

TEST(CommandTest, JsonTakesAFormOnlyBehindAnEqualsSign) {
  EXPECT_EQ(outcome_of({"greet", "lines"}, table()).out, "hello lines 0\n");
  EXPECT_EQ(outcome_of({"greet", "--json", "lines"}, table()).out, "hello lines 1\n");
  EXPECT_EQ(outcome_of({"greet", "--json=lines", "Ada"}, table()).out, "hello Ada 2\n");
}

TEST(CommandTest, UnknownVerbSuggestsTheNearest) {
  EXPECT_EQ(outcome_of({"gret"}, table()).err,
            "error: `gret` is no verb of tailtrace\n  fix:  tailtrace greet\n");
  EXPECT_EQ(outcome_of({"la"}, table()).err,
            "error: `la` is no verb of tailtrace\n  fix:  tailtrace launch\n");
  EXPECT_EQ(outcome_of({"zzzzzzzz"}, table()).err,
            "error: `zzzzzzzz` is no verb of tailtrace\n  fix:  tailtrace help\n");
  EXPECT_EQ(outcome_of({"salute"}, table()).err,
            "error: `salute` is no verb of tailtrace\n  fix:  tailtrace greet\n");
  EXPECT_EQ(outcome_of({"help", "lunch"}, table()).status, 2);
  EXPECT_EQ(outcome_of({}, table()).status, 2);
}

TEST(CommandTest, UnknownOptionSuggestsTheNearest) {
  auto refused = [](std::vector<std::string> args) { return outcome_of(args, table()).err; };
  EXPECT_THAT(refused({"greet", "--tmes=3", "Ada"}),
              HasSubstr("why:  `--tmes` is no option\n  fix:  `--times`, if that is meant\n"));
  EXPECT_THAT(refused({"greet", "--col", "Ada"}), HasSubstr("fix:  `--color`, if that is meant\n"));
  EXPECT_THAT(refused({"greet", "-x", "Ada"}),
              HasSubstr("why:  `-x` is no option\n  fix:  tailtrace help greet\n"));
  EXPECT_THAT(refused({"greet", "Ada", "Eve"}), HasSubstr("why:  `Eve` is one word too many\n"));
}

TEST(CommandTest, WordsFromElsewhereMeanOneVerbEach) {
  std::set<std::string_view> words;
  for (const Command& command : all_commands()) EXPECT_TRUE(words.insert(command.name).second);
  for (const Command& command : all_commands())
    for (std::string_view word : command.elsewhere) EXPECT_TRUE(words.insert(word).second) << word;
}

TEST(CommandTest, HelpOfAVerbShowsExamplesBeforeOptionsByEitherSpelling) {
  CommandOutcome outcome = outcome_of({"help", "greet"}, table());
  EXPECT_EQ(outcome.status, 0);
  std::size_t example = outcome.out.find("tailtrace greet Ada"),
              option = outcome.out.find("\n  --times=N");
  ASSERT_NE(example, std::string::npos);
  ASSERT_NE(option, std::string::npos);
  EXPECT_LT(example, option);
  EXPECT_THAT(outcome.out, HasSubstr("--color=auto|always|never"));
  EXPECT_EQ(outcome_of({"greet", "--help"}, table()).out, outcome.out);
  EXPECT_EQ(outcome_of({"greet", "-h"}, table()).out, outcome.out);
}

TEST(CommandTest, OverviewNamesEveryVerb) {
  std::string overview = outcome_of({"--help"}, table()).out;
  EXPECT_THAT(overview, HasSubstr("greet       Greet somebody\n"));
  EXPECT_THAT(overview, HasSubstr("launch"));
  EXPECT_EQ(outcome_of({"help"}, table()).out, overview);
}

TEST(CommandTest, VersionIsOneLine) {
  EXPECT_EQ(outcome_of({"--version"}, table()).out, "tailtrace " TAILTRACE_VERSION "\n");
}

template <class Exception>
Command command_that_throws(const Exception& exception) {
  Command command = launch_command();
  command.define = [exception](CLI::App&) -> RunCommand {
    return [exception](const Invocation&) -> Result<int> { throw exception; };
  };
  return command;
}

TEST(CommandTest, WithoutMemoryItSaysSoAndWhatHelps) {
  for (const Command& command : {command_that_throws(std::bad_alloc()),
                                 command_that_throws(std::length_error("vector::reserve"))}) {
    CommandOutcome outcome = outcome_of({"launch"}, {command});
    EXPECT_EQ(outcome.status, 7);
    EXPECT_THAT(outcome.err, StartsWith("error: cannot go on\n  why:  there is not enough memory\n"
                                        "  fix:  ask for less (--records"));
  }
}

// A disk that is full already.
class FullDisk : public testing::Test {
 protected:
  ~FullDisk() override { std::fclose(full_); }
  // What the error is.
  std::string refused(std::vector<std::string> args) {
    CapturedFile err;
    EXPECT_EQ(run_command_line(table(), std::move(args), full_, err.file()), 7);
    return err.text();
  }
  std::FILE* const full_ = std::fopen("/dev/full", "w");
};

constexpr const char* kNoSpace = "error: cannot write the output\n  why:  No space left";

TEST_F(FullDisk, IsAnErrorAtTheEnd) {
  EXPECT_THAT(refused({"greet", "Ada"}), StartsWith(kNoSpace));
}

TEST_F(FullDisk, IsAnErrorOfMoreThanTheBufferHolds) {
  EXPECT_EQ(refused({"greet", std::string(100000, 'a')}), "error: cannot write the output\n");
}

TEST_F(FullDisk, IsAnErrorAtOnce) {
  std::setvbuf(full_, nullptr, _IONBF, 0);
  EXPECT_THAT(refused({"--version"}), StartsWith(kNoSpace));
}

TEST_F(FullDisk, LeavesTheStatusOfAnErrorThatCannotBeTold) {
  std::setvbuf(full_, nullptr, _IONBF, 0);
  CapturedFile out;
  EXPECT_EQ(run_command_line(table(), {"no-such-verb"}, out.file(), full_), 2);
}

TEST(OutputOptionsTest, ColorFollowsTheOptionAndElseTheTerminal) {
  OutputOptions options;
  std::FILE* no_terminal = std::fopen("/dev/null", "w");
  EXPECT_FALSE(options.use_color(no_terminal));
  std::fclose(no_terminal);
  options.color = "always";
  EXPECT_TRUE(options.use_color(stdout));
  options.json = JsonForm::kDocument;
  EXPECT_FALSE(options.use_color(stdout));
}

// Holds for every verb there is: one screen of help, examples that name it, a one-line summary.
TEST(AllCommandsTest, HelpOfEveryVerbFitsAScreen) {
  for (const Command& command : all_commands()) {
    std::string help = command_help(command);
    EXPECT_LE(std::count(help.begin(), help.end(), '\n'), 50) << command.name;
    EXPECT_FALSE(command.examples.empty()) << command.name;
    for (const Example& example : command.examples)
      EXPECT_THAT(std::string(example.line), HasSubstr(std::string(command.name)));
    EXPECT_FALSE(command.summary.ends_with('.')) << command.name;
    std::size_t begin = 0;
    for (std::size_t end; (end = help.find('\n', begin)) != std::string::npos; begin = end + 1)
      EXPECT_LE(end - begin, 80u) << help.substr(begin, end - begin);
  }
}

}  // namespace
}  // namespace tailtrace
