// Recordings of a machine whose clock jumped: set back or on, as when a virtual one moves to
// another host, or beside other processors' clocks. What was executed, and in which order in each
// thread, does not depend on it; every question and every export has an answer.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "decoder/bundle/bundle.h"
#include "decoder/history/merged.h"
#include "decoder/history/queries/find.h"
#include "tests/support/command_outcome.h"
#include "tests/support/perf_files.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_program.h"
#include "tests/support/toy_symbols.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t kSteps = 600;
constexpr std::uint64_t kHour = 3'600'000'000'000;
constexpr std::uint64_t kBegin = 1'000 * kHour;

struct Clock {
  const char* name;
  // What it shows at a time: of so many records this one.
  std::uint64_t (*shown)(std::uint64_t time, std::size_t record, std::size_t records);
};

constexpr Clock kClocks[] = {
    {"goes_on", [](auto time, auto, auto) { return time; }},
    {"is_set_back", [](auto time, auto i, auto all) { return i < all / 2 ? time : time - kHour; }},
    {"is_set_on", [](auto time, auto i, auto all) { return i < all / 2 ? time : time + kHour; }},
    {"is_another_ones_now_and_then",
     [](auto time, auto i, auto) { return i / 7 % 2 == 0 ? time : time - kHour; }},
    {"begins_anew", [](auto time, auto i, auto all) { return i < all / 2 ? time : time - kBegin; }},
    {"runs_over", [](auto, auto i, auto all) { return 1000 * i - 500 * all; }},
    {"runs_backwards", [](auto time, auto i, auto) { return time - 2 * i * 1000; }},
    {"stands_still", [](auto, auto, auto) { return kBegin; }},
    {"is_not_known_for_a_while",
     [](auto time, auto i, auto all) { return i / (all / 5) % 2 == 0 ? time : 0; }},
};

class ClockThat : public testing::TestWithParam<Clock> {
 protected:
  ToyRun run(std::int32_t tid, bool jumps) const {
    ToyRun run = program_.run(static_cast<std::uint64_t>(tid), kSteps);
    run.snapshot->thread = {40, tid};
    std::vector<BranchRecord>& records = run.snapshot->records;
    for (std::size_t i = 0; i < records.size(); ++i) {
      const std::uint64_t time = kBegin + i * 1000;
      records[i].time = jumps ? GetParam().shown(time, i, records.size()) : time;
    }
    return run;
  }

  const ToyProgram program_{3, 4, 4};
  const ToyRun jumping_ = run(41, true), steady_ = run(42, false);
};

std::vector<Address> executed(const History& history) {
  std::vector<Address> addresses;
  HistoryCursor cursor(history);
  for (cursor.seek_to_oldest(); cursor.valid(); cursor.next())
    if (!cursor.item().is_gap) addresses.push_back(cursor.item().instruction.address);
  return addresses;
}

TEST_P(ClockThat, LeavesWhatWasExecutedInItsOrder) {
  const History jumping(jumping_.snapshot), steady(steady_.snapshot);
  EXPECT_EQ(executed(jumping), jumping_.executed);
  // Merged, each thread is whole and in its own order.
  const std::vector<const History*> threads = {&jumping, &steady};
  std::uint64_t next[] = {jumping.oldest(), steady.oldest()};
  for (const TimedStretch& stretch : newest_stretches(threads, ~0ull)) {
    EXPECT_EQ(stretch.items.first, next[stretch.thread]);
    next[stretch.thread] = stretch.items.last + 1;
  }
  EXPECT_EQ(next[0], jumping.newest() + 1);
  EXPECT_EQ(next[1], steady.newest() + 1);
}

TEST_P(ClockThat, LeavesTimesToBeFoundWhereTheyAre) {
  const History history(jumping_.snapshot);
  const std::uint64_t middle = kBegin + 1000 * jumping_.snapshot->records.size() / 2;
  for (auto [since, until] : {std::pair{1ull, middle},
                              {middle, ~0ull},
                              {middle - kHour, middle},
                              {std::uint64_t{1}, std::uint64_t{100'000}}}) {
    std::vector<std::uint64_t> found, expected;
    HistoryCursor cursor(history);
    for (cursor.seek_to_newest(); cursor.valid(); cursor.prev()) {
      const std::uint64_t time = cursor.item().time;
      if (time != 0 && since <= time && time <= until) expected.push_back(cursor.item().number);
    }
    Wanted wanted;
    wanted.since = since;
    wanted.until = until;
    ToySymbols symbols;
    find_newest_items(history, symbols, wanted, [&](std::uint64_t number) {
      found.push_back(number);
      return true;
    });
    EXPECT_EQ(found, expected) << since << " to " << until;
  }
}

TEST_P(ClockThat, LeavesAnAnswerToEveryQuestion) {
  TempFolder folder;
  const std::string path = folder.file("run.tt"), data = folder.file("perf.data");
  const std::string maps = FiledProgram::write(program_, folder.file("toy")).maps();
  auto writer = BundleWriter::create(path);
  ASSERT_TRUE(writer);
  for (const ToyRun* run : {&jumping_, &steady_}) ASSERT_TRUE(writer->add(*run->snapshot, maps));
  ASSERT_TRUE(writer->finish());
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"info", path},
           {"history", "--times", path, "--thread=41", "all"},
           {"history", "--merged", path},
           {"calls", path, "--thread=41"},
           {"stats", path},
           {"find", "--kind=return", path},
           {"save", path, folder.file("saved.tt")},
           {"export", "--format=perfetto", "-o", folder.file("perfetto"), path},
           {"export", "--format=chrome", "-o", folder.file("chrome"), path},
           {"export", "--format=html", "-o", folder.file("html"), path},
           {"export", "--format=perf-data", "-o", data, path}}) {
    const CommandOutcome outcome = outcome_of(words);
    EXPECT_EQ(outcome.status, 0) << words[0] << " " << words[1] << "\n" << outcome.err;
  }
  for (const std::string& copy : {folder.file("saved.tt"), data})
    EXPECT_EQ(outcome_of({"history", copy, "--thread=41", "all"}).out,
              outcome_of({"history", path, "--thread=41", "all"}).out)
        << copy;
}

INSTANTIATE_TEST_SUITE_P(Jumps, ClockThat, testing::ValuesIn(kClocks),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tailtrace
