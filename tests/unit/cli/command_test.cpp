#include "plugin/cli/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "plugin/cli/commands.h"
#include "plugin/cli/help.h"
#include "plugin/cli/output_options.h"

namespace tailtrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// A FILE that keeps what is written to it.
class Sink {
 public:
  Sink() : file_(::open_memstream(&data_, &size_)) {}
  ~Sink() {
    std::fclose(file_);
    std::free(data_);
  }
  std::FILE* file() { return file_; }
  std::string text() {
    std::fflush(file_);
    return {data_, size_};
  }

 private:
  char* data_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* file_;
};

struct Outcome {
  int status;
  std::string out, err;
};

Outcome run(const std::vector<Command>& table, std::vector<std::string> args) {
  Sink out, err;
  int status = run_command_line(table, std::move(args), out.file(), err.file());
  return {status, out.text(), err.text()};
}

Command greet_command() {
  return {
      .name = "greet",
      .summary = "Greet somebody",
      .usage = "[--times=N] NAME",
      .examples = {{"tailtrace greet Ada", "once"}},
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
  Outcome outcome = run(table(), {"greet", "--times=2", "Ada"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, "hello Ada 0\nhello Ada 0\n");
  EXPECT_EQ(outcome.err, "");
}

TEST(CommandTest, ExitStatusIsTheCommandsOwn) { EXPECT_EQ(run(table(), {"launch"}).status, 42); }

TEST(CommandTest, ErrorIsShownInTheAgreedShapeAndItsCodeIsTheExitStatus) {
  Outcome outcome = run(table(), {"greet", "Ada", "--times=-1"});
  EXPECT_EQ(outcome.status, 5);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "error: cannot greet\n  why:  a time is negative\n  fix:  --times=1\n");
}

TEST(CommandTest, ProgramBehindDashesKeepsItsOwnOptions) {
  Outcome outcome =
      run(table(), {"launch", "-ex", "info record", "--", "prog", "--help", "--", "x"});
  EXPECT_EQ(outcome.out,
            "extra -ex\nextra info record\n"
            "program prog\nprogram --help\nprogram --\nprogram x\n");
}

TEST(CommandTest, ArgumentsThatCannotBeParsedAreUsageErrorsWithAFix) {
  for (const std::vector<std::string>& args : {std::vector<std::string>{"greet"},
                                               {"greet", "--nonsense", "x"},
                                               {"greet", "--times=x", "y"},
                                               {"greet", "a", "b"},
                                               {"greet", "--json=what", "a"},
                                               {"greet", "--color=blue", "a"}}) {
    Outcome outcome = run(table(), args);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_THAT(outcome.err, StartsWith("error: cannot understand the arguments of tailtrace greet"
                                        "\n  why:  "));
    EXPECT_THAT(outcome.err, HasSubstr("\n  fix:  tailtrace help greet\n"));
  }
}

TEST(CommandTest, JsonTakesAFormOnlyBehindAnEqualsSign) {
  EXPECT_EQ(run(table(), {"greet", "lines"}).out, "hello lines 0\n");
  EXPECT_EQ(run(table(), {"greet", "--json", "lines"}).out, "hello lines 1\n");
  EXPECT_EQ(run(table(), {"greet", "--json=lines", "Ada"}).out, "hello Ada 2\n");
}

TEST(CommandTest, UnknownVerbSuggestsTheNearest) {
  EXPECT_EQ(run(table(), {"gret"}).err,
            "error: `gret` is no verb of tailtrace\n  fix:  tailtrace greet\n");
  EXPECT_EQ(run(table(), {"la"}).err,
            "error: `la` is no verb of tailtrace\n  fix:  tailtrace launch\n");
  EXPECT_EQ(run(table(), {"zzzzzzzz"}).err,
            "error: `zzzzzzzz` is no verb of tailtrace\n  fix:  tailtrace help\n");
  EXPECT_EQ(run(table(), {"help", "lunch"}).status, 2);
  EXPECT_EQ(run(table(), {}).status, 2);
}

TEST(CommandTest, HelpOfAVerbShowsExamplesBeforeOptionsByEitherSpelling) {
  Outcome outcome = run(table(), {"help", "greet"});
  EXPECT_EQ(outcome.status, 0);
  std::size_t example = outcome.out.find("tailtrace greet Ada"),
              option = outcome.out.find("\n  --times=N");
  ASSERT_NE(example, std::string::npos);
  ASSERT_NE(option, std::string::npos);
  EXPECT_LT(example, option);
  EXPECT_THAT(outcome.out, HasSubstr("--color=auto|always|never"));
  EXPECT_EQ(run(table(), {"greet", "--help"}).out, outcome.out);
}

TEST(CommandTest, OverviewNamesEveryVerb) {
  std::string overview = run(table(), {"--help"}).out;
  EXPECT_THAT(overview, HasSubstr("greet       Greet somebody\n"));
  EXPECT_THAT(overview, HasSubstr("launch"));
  EXPECT_EQ(run(table(), {"help"}).out, overview);
}

TEST(CommandTest, VersionIsOneLine) {
  EXPECT_EQ(run(table(), {"--version"}).out, "tailtrace " TAILTRACE_VERSION "\n");
}

TEST(CommandTest, OutputThatCannotBeWrittenIsAnError) {
  std::FILE* full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  Sink err;
  EXPECT_EQ(run_command_line(table(), {"greet", "Ada"}, full, err.file()), 7);
  EXPECT_THAT(err.text(), StartsWith("error: cannot write the output\n  why:  No space left"));
  std::fclose(full);
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
