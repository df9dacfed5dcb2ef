// Histories, their files and the commands that show them, against what single-stepping the same
// program saw.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "decoder/history/history.h"
#include "decoder/history/snapshot_file.h"
#include "plugin/engines/qemu/qemu_engine.h"
#include "tests/support/command_outcome.h"
#include "tests/support/qemu_recording.h"
#include "tests/support/qemu_steps.h"
#include "tests/support/temp_folder.h"
#include "tests/support/unfold.h"

namespace tailtrace {
namespace {

using testing::HasSubstr;

Addresses walk_forward(const History& history) {
  Addresses addresses;
  HistoryCursor cursor(history);
  for (cursor.seek_to_oldest(); cursor.valid(); cursor.next())
    addresses.push_back(cursor.item().instruction.address.value);
  return addresses;
}

Addresses walk_backward(const History& history) {
  Addresses addresses;
  HistoryCursor cursor(history);
  for (cursor.seek_to_newest(); cursor.valid(); cursor.prev())
    addresses.push_back(cursor.item().instruction.address.value);
  std::reverse(addresses.begin(), addresses.end());
  return addresses;
}

// The only thread of a program run to its end.
std::shared_ptr<const ThreadSnapshot> recorded(const std::string& program, std::uint64_t records) {
  QemuOptions options = test_options({built_program(program)});
  options.ring_records = records;
  auto recording = record_to_end(options);
  EXPECT_TRUE(recording) << recording.error().to_string();
  if (!recording) return nullptr;
  return std::make_shared<ThreadSnapshot>(recording->processes.at(0).threads.at(0).snapshot);
}

class HistoryTruth : public testing::TestWithParam<const char*> {
 protected:
  // A stepper sees instructions begin that raise a signal instead; they were not executed.
  Addresses truth(const ThreadSnapshot& snapshot) {
    auto steps = step_under_qemu({built_program(GetParam())}, kTestEnvironment);
    EXPECT_TRUE(steps);
    if (!steps) return {};
    Addresses all = without_iterations(steps->threads.at(0), *snapshot.code);
    Unfolded with_attempts = unfold(snapshot, true);
    EXPECT_TRUE(is_equal(with_attempts.executed, all));
    return std::string(GetParam()) == "signals" ? unfold(snapshot, false).executed : all;
  }
};

TEST_P(HistoryTruth, IsWhatSteppingSawInBothDirectionsAndAtRandom) {
  auto snapshot = recorded(GetParam(), 1 << 20);
  ASSERT_NE(snapshot, nullptr);
  Addresses steps = truth(*snapshot);
  History history(snapshot);
  EXPECT_EQ(history.gaps(), 0u);
  EXPECT_TRUE(history.complete());
  EXPECT_TRUE(is_equal(walk_forward(history), steps));
  EXPECT_TRUE(is_equal(walk_backward(history), steps));
  HistoryCursor cursor(history);
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::uint64_t n = random() % steps.size();
    cursor.seek(n + 1);
    ASSERT_EQ(cursor.item().instruction.address.value, steps[n]) << n;
  }
}

TEST_P(HistoryTruth, OfASmallRingIsTheTailOfIt) {
  auto snapshot = recorded(GetParam(), 1 << 10);
  ASSERT_NE(snapshot, nullptr);
  History history(snapshot);
  EXPECT_EQ(history.gaps(), 0u);
  EXPECT_FALSE(history.complete());
  Addresses whole = walk_forward(History(recorded(GetParam(), 1 << 20)));
  ASSERT_LT(history.size(), whole.size());
  Addresses tail(whole.end() - static_cast<std::ptrdiff_t>(history.size()), whole.end());
  EXPECT_TRUE(is_equal(walk_forward(history), tail));
}

TEST_P(HistoryTruth, IsTheSameWhenItWasKeptInAFile) {
  auto snapshot = recorded(GetParam(), 1 << 20);
  ASSERT_NE(snapshot, nullptr);
  TempFolder folder;
  ASSERT_TRUE(save_snapshot(*snapshot, "", folder.file("stream")));
  auto loaded = load_snapshot(folder.file("stream"));
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_TRUE(loaded->problems.empty());
  EXPECT_EQ(loaded->snapshot->records, snapshot->records);
  History history(loaded->snapshot);
  EXPECT_EQ(history.gaps(), 0u);
  EXPECT_TRUE(is_equal(walk_forward(history), walk_forward(History(snapshot))));
}

INSTANTIATE_TEST_SUITE_P(Programs, HistoryTruth,
                         testing::Values("recursion", "tail_calls", "exceptions", "signals",
                                         "lazy_binding", "loads_library", "changes_code",
                                         "string_instructions", "symbols_sample"),
                         [](const auto& info) { return std::string(info.param); });

// A session that stays until the test has looked at it.
class HistoryCommands : public testing::Test {
 protected:
  void record(const std::string& program, std::uint64_t records = 1 << 20) {
    QemuOptions options = test_options({built_program(program)});
    options.ring_records = records;
    UniqueFd nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC));
    options.stdio = {nowhere.get(), nowhere.get(), nowhere.get()};
    auto process = QemuProcess::launch(options);
    ASSERT_TRUE(process) << process.error().to_string();
    ASSERT_TRUE(process->wait());
    process_ = std::make_unique<QemuProcess>(std::move(*process));
  }
  std::string session() const { return process_->session(); }

 private:
  std::unique_ptr<QemuProcess> process_;
};

TEST_F(HistoryCommands, InfoCountsWhatSteppingCounted) {
  record("recursion");
  auto steps = step_under_qemu({built_program("recursion")}, kTestEnvironment);
  ASSERT_TRUE(steps);
  CommandOutcome outcome = outcome_of({"info", "--json", "--strict", session()});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["schema"], "tailtrace.info/1");
  ASSERT_EQ(json["threads"].size(), 1u);
  const auto& thread = json["threads"][0];
  EXPECT_EQ(thread["gaps"], 0);
  EXPECT_EQ(thread["complete"], true);
  EXPECT_EQ(thread["state"], "exited");
  auto snapshot = recorded("recursion", 1 << 20);
  EXPECT_EQ(thread["instructions"],
            without_iterations(steps->threads.at(0), *snapshot->code).size());
  EXPECT_THAT(outcome_of({"info", session()}).out, HasSubstr("gaps          0\n"));
}

TEST_F(HistoryCommands, HistoryShowsTheNewestLast) {
  record("recursion");
  CommandOutcome outcome = outcome_of({"history", session(), "-3,-1"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::EndsWith("    [-1]  syscall\n"));
  outcome = outcome_of({"history", "--json=lines", session(), "all"});
  std::istringstream lines(outcome.out);
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  auto head = nlohmann::json::parse(line);
  EXPECT_EQ(head["schema"], "tailtrace.history/1");
  auto steps = step_under_qemu({built_program("recursion")}, kTestEnvironment);
  ASSERT_TRUE(steps);
  Addresses shown;
  while (std::getline(lines, line))
    shown.push_back(
        std::stoull(nlohmann::json::parse(line)["address"].get<std::string>(), nullptr, 16));
  auto snapshot = recorded("recursion", 1 << 20);
  EXPECT_TRUE(is_equal(shown, without_iterations(steps->threads.at(0), *snapshot->code)));
  EXPECT_EQ(head["size"], shown.size());
}

// The names of the functions from one call of `begin` on, with their levels from there.
std::vector<std::string> calls_from(const nlohmann::json& calls, const std::string& begin,
                                    std::size_t count) {
  std::vector<std::string> names;
  int level = 0;
  for (const auto& call : calls) {
    std::string name = call.value("function", "?");
    if (names.empty() && name != begin) continue;
    if (names.empty()) level = call["level"];
    names.push_back(std::to_string(call["level"].get<int>() - level) + " " + name);
    if (names.size() == count) break;
  }
  return names;
}

// The truth is the program's text.
TEST_F(HistoryCommands, CallsShowWhoCalledWhom) {
  record("symbols_sample");
  CommandOutcome outcome = outcome_of({"calls", "--json", session(), "all"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["schema"], "tailtrace.calls/1");
  const std::string step = "sample::Worker::step(int)";
  EXPECT_THAT(calls_from(json["calls"], step, 7),
              testing::ElementsAre("0 " + step, "1 " + step, "2 " + step, "3 " + step, "2 " + step,
                                   "1 " + step, "0 " + step));
  EXPECT_THAT(calls_from(json["calls"], "plain", 5),
              testing::ElementsAre("0 plain", "1 hidden(int)", "0 plain",
                                   "1 plain::Local::add(int, int)", "0 plain"));
  CommandOutcome text = outcome_of({"calls", "--forward", session(), "1,+2"});
  EXPECT_THAT(text.out, testing::StartsWith("    [1]  "));
  // The dynamic loader's functions have names only where its debug symbols are installed.
  EXPECT_THAT(text.out, testing::AnyOf(HasSubstr("_dl_start"), HasSubstr("?? (ld-linux-x86-64")));
}

TEST_F(HistoryCommands, SayWhatIsWrongWithTheirArguments) {
  record("nothing", 1 << 10);
  EXPECT_EQ(outcome_of({"history"}).status, 2);
  EXPECT_EQ(outcome_of({"history", session(), "nonsense"}).status, 2);
  EXPECT_EQ(outcome_of({"history", session(), "-5,-1", "-3"}).status, 2);
  EXPECT_EQ(outcome_of({"history", session(), "999999999"}).status, 1);
  CommandOutcome thread = outcome_of({"history", "--thread=1", session()});
  EXPECT_EQ(thread.status, 2);
  EXPECT_THAT(thread.err, HasSubstr("the threads are "));
  EXPECT_EQ(outcome_of({"info", "--thread=1", session()}).status, 2);
  TempFolder folder;
  EXPECT_EQ(outcome_of({"info", folder.path()}).status, 5);
  EXPECT_EQ(outcome_of({"info", folder.file("none")}).status, 7);
  std::ofstream(folder.file("text")) << "this is not a record stream, whatever else it may be";
  EXPECT_EQ(outcome_of({"calls", folder.file("text")}).status, 5);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(session()))
    if (entry.path().extension() == ".ring") {
      CommandOutcome ring = outcome_of({"info", entry.path().string()});
      EXPECT_EQ(ring.status, 2);
      EXPECT_THAT(ring.err, HasSubstr("name its folder: "));
    }
}

TEST_F(HistoryCommands, ReadRecordStreamsAsWell) {
  auto snapshot = recorded("recursion", 1 << 12);
  ASSERT_NE(snapshot, nullptr);
  TempFolder folder;
  std::string path = folder.file("stream");
  ASSERT_TRUE(save_snapshot(*snapshot, "", path));
  CommandOutcome outcome = outcome_of({"info", "--json", path});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(outcome.out)["threads"][0]["records"], snapshot->records.size());
  EXPECT_EQ(outcome_of({"history", "--strict", path}).status, 0);
  // Cut short it is still good for what is left, and says so.
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 10);
  outcome = outcome_of({"history", path});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.err, HasSubstr("it is cut short"));
}

}  // namespace
}  // namespace tailtrace
