// The history of the qemu engine against what single-stepping the same program saw, instruction by
// instruction.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/support/qemu_recording.h"
#include "tests/support/qemu_steps.h"
#include "tests/support/temp_folder.h"
#include "tests/support/unfold.h"

namespace tailtrace {
namespace {

// The history equals what stepping saw, from the first instruction to the last.
void expect_all(const std::vector<std::string>& program,
                const std::vector<std::string>& environment = kTestEnvironment) {
  auto truth = step_under_qemu(program, environment);
  ASSERT_TRUE(truth) << truth.error().to_string();
  QemuOptions options = test_options(program);
  options.environment = environment;
  options.ring_records = 1 << 20;
  auto recorded = record_to_end(options);
  ASSERT_TRUE(recorded) << recorded.error().to_string();
  EXPECT_EQ(recorded->status, truth->status);
  ASSERT_EQ(recorded->processes.size(), 1u);
  ASSERT_EQ(recorded->processes[0].threads.size(), 1u);
  const ThreadSnapshot& snapshot = recorded->processes[0].threads[0].snapshot;
  EXPECT_TRUE(snapshot.complete);
  Unfolded history = unfold(snapshot, true);
  EXPECT_EQ(history.problem, "");
  Addresses steps = without_iterations(truth->threads.at(0), *snapshot.code);
  EXPECT_GT(steps.size(), 10000u);
  EXPECT_TRUE(is_equal(history.executed, steps));
}

class QemuTruth : public testing::TestWithParam<const char*> {};

TEST_P(QemuTruth, HistoryIsWhatSteppingSaw) { expect_all({built_program(GetParam())}); }

TEST_P(QemuTruth, ASmallRingHoldsExactlyTheTail) {
  std::vector<std::string> program = {built_program(GetParam())};
  auto truth = step_under_qemu(program, kTestEnvironment);
  ASSERT_TRUE(truth) << truth.error().to_string();
  QemuOptions options = test_options(program);
  options.ring_records = 1 << 10;
  auto recorded = record_to_end(options);
  ASSERT_TRUE(recorded) << recorded.error().to_string();
  const ThreadSnapshot& snapshot = recorded->processes.at(0).threads.at(0).snapshot;
  EXPECT_FALSE(snapshot.complete);
  EXPECT_EQ(snapshot.records.size(), (1u << 10) - 1 + 1);  // and the one that closes it
  Unfolded history = unfold(snapshot, true);
  EXPECT_EQ(history.problem, "");
  Addresses steps = without_iterations(truth->threads.at(0), *snapshot.code);
  ASSERT_GE(steps.size(), history.executed.size());
  EXPECT_GT(history.executed.size(), 1000u);
  Addresses tail(steps.end() - static_cast<std::ptrdiff_t>(history.executed.size()), steps.end());
  EXPECT_TRUE(is_equal(history.executed, tail));
}

TEST(QemuTruthOfRealPrograms, ACompressor) {
  TempFolder folder;
  std::string text;
  for (int i = 0; i < 1200; ++i) text += std::to_string(i * 7919 % 10007) + "\n";
  std::ofstream(folder.file("text")) << text;
  expect_all({"/usr/bin/gzip", "-c", folder.file("text")});
}

TEST(QemuTruthOfRealPrograms, AnInterpreter) {
  const char* text =
      "my %h; $h{$_ % 7} += $_ for 1 .. 100; print join ',', map {qq($_=$h{$_})} sort keys %h;";
  // Perl's hash tables are different in each run unless told otherwise.
  expect_all({"/usr/bin/perl", "-e", text}, {"PERL_HASH_SEED=0", "PERL_PERTURB_KEYS=0"});
}

// The program itself says whether all was as the kernel does it. Under qemu alone it crashes.
TEST(QemuTruthOfHandlers, TheirStackIsAligned) {
  QemuOptions options = test_options({built_program("aligned_handlers")});
  options.ring_records = 1 << 20;
  auto recorded = record_to_end(options);
  ASSERT_TRUE(recorded) << recorded.error().to_string();
  EXPECT_EQ(recorded->status, 0);
  const ThreadSnapshot& snapshot = recorded->processes.at(0).threads.at(0).snapshot;
  EXPECT_TRUE(snapshot.complete);
  EXPECT_EQ(unfold(snapshot, true).problem, "");
  const auto is_signal = [](const BranchRecord& r) { return r.kind == RecordKind::kSignal; };
  EXPECT_GT(std::ranges::count_if(snapshot.records, is_signal), 200);
}

INSTANTIATE_TEST_SUITE_P(Programs, QemuTruth,
                         testing::Values("recursion", "tail_calls", "exceptions", "signals",
                                         "lazy_binding", "loads_library", "changes_code",
                                         "string_instructions", "many_mappings", "recursion_static",
                                         "recursion_static_pie"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tailtrace
