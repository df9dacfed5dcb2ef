#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/cli/lldb_refusal.h"
#include "plugin/cli/lldb_server_command.h"

namespace tailtrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

LldbServerWords parsed(const std::vector<std::string>& args) {
  auto words = parse_lldb_server_words(args);
  EXPECT_TRUE(words) << words.error().to_line();
  return words.value_or(LldbServerWords{});
}

std::string refused(const std::vector<std::string>& args) {
  auto words = parse_lldb_server_words(args);
  EXPECT_FALSE(words);
  return words ? "" : words.error().why;
}

TEST(LldbServerWords, AsLldbStartsItsServer) {
  LldbServerWords words = parsed({"--native-regs", "--setsid", "--fd=9"});
  EXPECT_EQ(words.fd, 9);
  EXPECT_TRUE(words.new_session);
  EXPECT_TRUE(words.address.empty());
  EXPECT_THAT(words.passed, ElementsAre("--native-regs"));
}

TEST(LldbServerWords, AsAUserTypesThem) {
  LldbServerWords words = parsed({"-l", "a.log", "--log-channels=lldb all", "*:1234", "./p", "-x"});
  EXPECT_EQ(words.fd, -1);
  EXPECT_EQ(words.address, "*:1234");
  EXPECT_THAT(words.passed,
              ElementsAre("--log-file", "a.log", "--log-channels", "lldb all", "--", "./p", "-x"));
}

TEST(LldbServerWords, ThePortCanBeAskedFor) {
  EXPECT_EQ(parsed({"--pipe", "7", "localhost:0"}).port_fd, 7);
  EXPECT_EQ(parsed({"--named-pipe=/a", "localhost:0"}).port_path, "/a");
  EXPECT_TRUE(parsed({"-r", "localhost:1"}).reverse);
}

TEST(LldbServerWords, AProgramsOwnOptionsAreNotOurs) {
  LldbServerWords words = parsed({":0", "--", "./p", "--fd=3"});
  EXPECT_EQ(words.fd, -1);
  EXPECT_THAT(words.passed, ElementsAre("--", "./p", "--fd=3"));
}

TEST(LldbServerWords, AttachesBelow) {
  EXPECT_THAT(parsed({"-a", "17", ":0"}).passed, ElementsAre("--attach", "17"));
}

TEST(LldbServerWords, WhatCannotBeUnderstoodIsSaid) {
  EXPECT_THAT(refused({}), HasSubstr("neither --fd nor [HOST]:PORT"));
  EXPECT_THAT(refused({"--fd=x"}), HasSubstr("`x` is no descriptor"));
  EXPECT_THAT(refused({"--fd"}), HasSubstr("--fd has no value"));
}

TEST(LldbRefusal, ToldWhereLldbShowsItToItsUser) {
  Error error{ErrorCode::kNoEngine, "no server", "none is there", "get one", {}};
  EXPECT_EQ(answer_of_refusal("QEnableErrorStrings", error), "OK");
  EXPECT_THAT(answer_of_refusal("qHostInfo", error), IsEmpty());
  for (const char* request : {"vRun;2f61", "vAttach;11", "vAttachWait;61", "A4,0,2f61"})
    EXPECT_TRUE(answer_of_refusal(request, error).starts_with("E03;6e6f")) << request;
}

}  // namespace
}  // namespace tailtrace
