#include "plugin/provider/trials.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "plugin/provider/child_process.h"
#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

TEST(ToolVersion, IsFoundBetweenWhatDistributorsAdd) {
  EXPECT_EQ(version_in("GNU gdb (Debian 13.1-3) 13.1\nCopyright 2.0"), "13.1");
  EXPECT_EQ(version_in("GNU gdb (GDB) Fedora Linux 14.2-1.fc40"), "14.2");
  EXPECT_EQ(version_in("qemu-x86_64 version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)"), "7.2.22");
  EXPECT_EQ(version_in("lldb version 19.1.7"), "19.1.7");
  EXPECT_EQ(version_in("no number\n1.2"), "");
  EXPECT_EQ(version_in(""), "");
}

TEST(RunProgram, GivesStatusAndBothOutputs) {
  auto outcome = run_program({"sh", "-c", "echo out; echo err >&2; exit 3"});
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->status, 3);
  EXPECT_EQ(outcome->output, "out\nerr\n");
  EXPECT_EQ(run_program({"sh", "-c", "kill -9 $$"})->status, 128 + SIGKILL);
}

TEST(RunProgram, HasNoInput) { EXPECT_EQ(run_program({"cat"})->output, ""); }

TEST(RunProgram, KillsWhatDoesNotEnd) {
  auto outcome = run_program({"sleep", "1000"}, std::chrono::milliseconds(1));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kGone);
}

TEST(RunProgram, SaysWhatCannotBeStarted) {
  auto outcome = run_program({"/nonexistent/program"});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().to_string(),
            "error: cannot run /nonexistent/program\n  why:  No such file or directory");
}

TEST(PathOfProgram, TakesTheFirstExecutableFile) {
  TempFolder folder;
  for (const char* place : {"folder", "plain", "good", "later"})
    std::filesystem::create_directory(folder.file(place));
  std::filesystem::create_directory(folder.file("folder/tool"));
  for (const char* place : {"plain", "good", "later"})
    std::ofstream(folder.file(std::string(place) + "/tool")) << "#!/bin/sh\n";
  using std::filesystem::perms;
  std::filesystem::permissions(folder.file("plain/tool"), perms::owner_read);
  std::filesystem::permissions(folder.file("good/tool"), perms::owner_all);
  std::filesystem::permissions(folder.file("later/tool"), perms::owner_all);
  const std::string path = folder.file("missing") + ":" + folder.file("folder") + ":" +
                           folder.file("plain") + ":" + folder.file("good") + ":" +
                           folder.file("later");
  EXPECT_EQ(path_of_program("tool", path), folder.file("good/tool"));
  EXPECT_EQ(path_of_program("other", path), "");
  EXPECT_EQ(path_of_program("tool", ""), "");
  EXPECT_EQ(path_of_program(folder.file("later/tool"), path), folder.file("later/tool"));
  EXPECT_EQ(path_of_program(folder.file("plain/tool"), path), "");
}

}  // namespace
}  // namespace tailtrace
