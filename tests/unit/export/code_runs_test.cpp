#include "decoder/export/code_runs.h"

#include <gtest/gtest.h>

#include <cstring>

#include "decoder/export/drcov.h"
#include "decoder/export/numpy_file.h"
#include "tests/support/toy_program.h"

namespace tailtrace {
namespace {

// The machine of the toy program says what was executed; runs are counted by hand from that.
std::map<Address, std::uint64_t> times_executed(const ToyRun& run, Range range) {
  std::map<Address, std::uint64_t> times;
  for (std::uint64_t i = range.first; i <= range.last; ++i) ++times[run.executed[i - 1]];
  return times;
}

std::map<Address, std::uint64_t> times_in_runs(const CodeRuns& runs, const CodeImage& image) {
  std::map<Address, std::uint64_t> times;
  CodeReader code(image);
  for (const auto& [run, count] : runs.runs) {
    code.set_epoch(run.epoch);
    for (Address at = run.first; at <= run.last; at = code.at(at)->next()) times[at] += count;
  }
  return times;
}

TEST(CodeRuns, HoldEachInstructionAsOftenAsItWasExecuted) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    ToyProgram program(seed, 4, 6);
    ToyRun run = program.run(seed, 1000, seed % 2 == 0);
    History history(run.snapshot);
    ASSERT_EQ(history.size(), run.executed.size());
    for (Range range : {Range{1, history.size()}, Range{5, 17}, Range{300, 900}, Range{7, 7}}) {
      CodeRuns runs;
      add_code_runs(history, range, runs);
      EXPECT_EQ(times_in_runs(runs, *program.image()), times_executed(run, range)) << seed;
    }
  }
}

TEST(CodeRuns, CountBranchesOnceForEachRecordOfThem) {
  ToyRun run = ToyProgram(3, 4, 6).run(3, 1000, true);
  History history(run.snapshot);
  std::map<CodeBranch, std::uint64_t> expected;
  Epoch epoch;
  for (const BranchRecord& record : run.snapshot->records) {
    if (record.kind == RecordKind::kCodeChange) ++epoch.value;
    if (!record.is_async() && !record.from.is_null() && !record.to.is_null())
      ++expected[{record.from, record.to, epoch}];
  }
  CodeRuns runs;
  add_code_runs(history, {1, history.size()}, runs);
  std::map<CodeBranch, std::uint64_t> found;
  for (const auto& [branch, count] : runs.branches) found[branch] = count.times;
  EXPECT_EQ(found, expected);
}

TEST(CodeRuns, AreCutBehindEachBranch) {
  ToyProgram program(4, 4, 6);
  ToyRun run = program.run(4, 1000, false);
  History history(run.snapshot);
  CodeRuns runs;
  add_code_runs(history, {1, history.size()}, runs);
  CodeReader code(*program.image());
  for (const auto& [whole, times] : runs.runs) {
    Address next = whole.first;
    each_block(whole, code, [&](Address begin, Address end) {
      EXPECT_EQ(begin, next);
      for (Address at = begin; at < end; at = code.at(at)->next())
        EXPECT_EQ(code.at(at)->is_branch() || code.at(at)->next() == whole.end,
                  code.at(at)->next() == end);
      next = end;
    });
    EXPECT_EQ(next, whole.end);
  }
}

TEST(Drcov, LeavesOutWhatLiesInNoFile) {
  ToyRun run = ToyProgram(5, 4, 6).run(5, 500, false);
  History history(run.snapshot);
  DrcovFile none, all;
  none.add(history, {1, history.size()}, [](Epoch) { return std::vector<LoadedFile>(); });
  EXPECT_GT(none.left_out(), 0u);
  const LoadedFile file{ToyProgram::kBase, ToyProgram::kBase + 0x10000, "/bin/toy"};
  all.add(history, {1, history.size()}, [&](Epoch) { return std::vector{file}; });
  EXPECT_EQ(all.left_out(), 0u);
  std::string text;
  none.write([&](std::string_view bytes) { return text.append(bytes), true; });
  EXPECT_NE(text.find("Module Table: version 2, count 0\n"), std::string::npos);
  EXPECT_TRUE(text.ends_with("BB Table: 0 bbs\n"));
}

TEST(NumpyFile, HoldsTheRecordsBehindAHeaderOf64Bytes) {
  ToyRun run = ToyProgram(6, 4, 6).run(6, 500, true);
  History history(run.snapshot);
  std::string bytes;
  write_numpy_records(history, {1, history.size()},
                      [&](std::string_view more) { return bytes.append(more), true; });
  const std::size_t header = bytes.find('\n') + 1;
  EXPECT_EQ(header % 64, 0u);
  ASSERT_EQ((bytes.size() - header) % sizeof(BranchRecord), 0u);
  const std::size_t records = (bytes.size() - header) / sizeof(BranchRecord);
  EXPECT_NE(bytes.find("'shape': (" + std::to_string(records) + ",)"), std::string::npos);
  ASSERT_EQ(records, run.snapshot->records.size());
  EXPECT_EQ(std::memcmp(bytes.data() + header, run.snapshot->records.data(),
                        records * sizeof(BranchRecord)),
            0);
}

}  // namespace
}  // namespace tailtrace
