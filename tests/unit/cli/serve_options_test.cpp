#include "plugin/cli/serve_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tailtrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The options as the command line makes them of its words.
Result<ServeOptions> parse(std::vector<std::string> args) {
  auto wrapper = take_wrapper(args);
  if (!wrapper) return fail(wrapper.error());
  ServeWords words;
  CLI::App app;
  add_serve_options(app, words);
  std::reverse(args.begin(), args.end());
  try {
    app.parse(args);
  } catch (const CLI::ParseError& error) {
    return fail(ErrorCode::kUsage, error.what());
  }
  return serve_options(words, *wrapper, app.remaining());
}

std::string why(std::vector<std::string> args) {
  auto options = parse(std::move(args));
  if (options) return "understood";
  EXPECT_EQ(options.error().code, ErrorCode::kUsage);
  return options.error().what + ": " + options.error().why;
}

TEST(ServeOptions, WhatFollowsTheProgramIsItsOwn) {
  auto options = parse({"--once", ":1234", "prog", "--once", "--multi", "--", "-x"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->comm, ":1234");
  EXPECT_TRUE(options->once);
  EXPECT_FALSE(options->multi);
  EXPECT_THAT(options->program, ElementsAre("prog", "--once", "--multi", "--", "-x"));
}

TEST(ServeOptions, GdbserversWholeCommandLineIsTaken) {
  auto options =
      parse({"--debug", "--remote-debug", "--event-loop-debug", "--debug-format=all",
             "--disable-packet=vCont,T", "--no-startup-with-shell", "--no-disable-randomization",
             "--wrapper", "env", "-u", "HOME", "A=1", "--", "localhost:0", "prog"});
  ASSERT_TRUE(options) << options.error().to_string();
  EXPECT_THAT(options->wrapper, ElementsAre("env", "-u", "HOME", "A=1"));
  EXPECT_FALSE(options->startup_with_shell);
  EXPECT_FALSE(options->disable_randomization);
  EXPECT_EQ(options->comm, "localhost:0");
  EXPECT_THAT(options->program, ElementsAre("prog"));
  EXPECT_THAT(options->pass_through, ElementsAre("--debug", "--remote-debug", "--event-loop-debug",
                                                 "--debug-format=all", "--disable-packet=vCont,T"));
}

TEST(ServeOptions, DefaultsAreGdbservers) {
  auto options = parse({"-", "prog"});
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->startup_with_shell);
  EXPECT_TRUE(options->disable_randomization);
  EXPECT_FALSE(options->allow_remote_hosts);
  EXPECT_EQ(options->engine, EngineChoice::kAuto);
  EXPECT_FALSE(options->since_start);
  EXPECT_THAT(options->pass_through, IsEmpty());
}

TEST(ServeOptions, WrapperIsFoundBehindAnOptionWithASeparateValue) {
  auto options = parse({"--engine", "step", "--wrapper", "nice", "--", ":0", "prog", "--wrapper"});
  ASSERT_TRUE(options) << options.error().to_string();
  EXPECT_EQ(options->engine, EngineChoice::kStep);
  EXPECT_THAT(options->wrapper, ElementsAre("nice"));
  EXPECT_THAT(options->program, ElementsAre("prog", "--wrapper"));
}

TEST(ServeOptions, WrapperOfTheProgramIsNotOurs) {
  auto options = parse({":0", "prog", "--wrapper", "nice", "--"});
  ASSERT_TRUE(options);
  EXPECT_THAT(options->wrapper, IsEmpty());
  EXPECT_THAT(options->program, ElementsAre("prog", "--wrapper", "nice", "--"));
}

TEST(ServeOptions, DashesMayStandBeforeTheProgram) {
  auto options = parse({"-", "--", "prog", "-x"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->comm, "-");
  EXPECT_THAT(options->program, ElementsAre("prog", "-x"));
}

TEST(ServeOptions, AttachTakesAProcessId) {
  auto options = parse({"--attach", ":0", "4711"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->attach_pid, 4711);
  EXPECT_THAT(options->program, IsEmpty());
  for (const std::string pid : {"0", "-1", "x", "12x", "99999999999"})
    EXPECT_THAT(why({"--attach", ":0", pid}), HasSubstr("`" + pid + "` is no process id"));
  EXPECT_THAT(why({"--attach", ":0"}), HasSubstr("takes COMM and one process id"));
  EXPECT_THAT(why({"--attach", ":0", "1", "2"}), HasSubstr("takes COMM and one process id"));
}

TEST(ServeOptions, MultiNeedsNoProgram) {
  auto options = parse({"--multi", ":0"});
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->multi);
  EXPECT_THAT(why({":0"}), HasSubstr("no program behind COMM"));
}

TEST(ServeOptions, SaysWhatIsMissingOrUnknown) {
  EXPECT_THAT(why({}), HasSubstr("COMM is missing"));
  EXPECT_THAT(why({"--nonsense", ":0", "prog"}), HasSubstr("`--nonsense` is no option"));
  EXPECT_THAT(why({"-x", ":0", "prog"}), HasSubstr("`-x` is no option"));
  EXPECT_THAT(why({"--wrapper", "env", ":0", "prog"}), HasSubstr("no `--`"));
  EXPECT_THAT(why({"--wrapper", "--", ":0", "prog"}), HasSubstr("no words"));
  EXPECT_THAT(why({"--engine=magic", ":0", "prog"}), HasSubstr("magic"));
}

TEST(ServeOptions, RecordingOptionsArrive) {
  auto options =
      parse({"--engine=qemu", "--since=start", "--ring=64MiB", "--handover=5000", "--keep=kept",
             "--gdbserver=/opt/gdbserver", "--qemu=/opt/qemu", ":0", "prog"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->engine, EngineChoice::kQemu);
  EXPECT_TRUE(options->since_start);
  EXPECT_EQ(options->ring_records, 2u << 20);
  EXPECT_EQ(options->handover_instructions_pt, 5000u);
  EXPECT_EQ(options->handover_instructions_bts, 5000u);
  EXPECT_TRUE(options->handover_is_said);
  EXPECT_EQ(options->keep_folder, "kept");
  EXPECT_EQ(options->gdbserver, "/opt/gdbserver");
  EXPECT_EQ(options->qemu, "/opt/qemu");
}

TEST(ServeOptions, HandoverIsAPositiveNumber) {
  for (const std::string number : {"0", "-1", "many", "1x", "99999999999999999999"})
    EXPECT_THAT(why({"--handover=" + number, ":0", "prog"}), HasSubstr("`" + number + "`"));
}

TEST(ServeOptions, ImpossibleRingsAreRefused) {
  for (const std::string ring : {"0", "-1", "-64MiB", "3", "1000", "99999999999999999999", "16TiB",
                                 "99999999999TiB", "64", "1KiB", "many", "64parsecs"}) {
    auto options = parse({"--ring=" + ring, ":0", "prog"});
    if (ring == "64") {
      EXPECT_TRUE(options) << ring;
      continue;
    }
    ASSERT_FALSE(options) << ring;
    EXPECT_EQ(options.error().code, ErrorCode::kUsage) << ring;
    EXPECT_FALSE(options.error().why.empty()) << ring;
  }
}

}  // namespace
}  // namespace tailtrace
