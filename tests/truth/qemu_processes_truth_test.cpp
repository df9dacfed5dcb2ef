// Histories across fork and exec against what single-stepping saw.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/qemu_recording.h"
#include "tests/support/unfold.h"

namespace tailtrace {
namespace {

bool begins_with(const Addresses& all, const Addresses& begin) {
  return all.size() >= begin.size() && std::equal(begin.begin(), begin.end(), all.begin());
}

class QemuProcessesTruth : public testing::Test {
 protected:
  void SetUp() override {
    auto both = step_and_record({built_program("vfork_exec"), built_program("recursion")});
    ASSERT_TRUE(both) << both.error().to_string();
    steps_ = std::move(both->steps);
    recording_ = std::move(both->recording);
  }

  const ThreadSnapshot& main_thread(std::size_t process) {
    return recording_.processes.at(process).threads.at(0).snapshot;
  }
  Addresses history(std::size_t process) {
    Unfolded unfolded = unfold(main_thread(process), true);
    EXPECT_EQ(unfolded.problem, "") << "process " << process;
    return unfolded.executed;
  }

  QemuSteps steps_;
  Recording recording_;
};

TEST_F(QemuProcessesTruth, ThereIsAFolderForEachProcessAndEachProgram) {
  ASSERT_EQ(recording_.processes.size(), 5u);
  std::vector<unsigned> programs;
  for (const RecordedProcess& p : recording_.processes) programs.push_back(p.program_index);
  EXPECT_EQ(programs, (std::vector<unsigned>{0, 0, 1, 0, 0}));
  EXPECT_EQ(recording_.processes[1].pid, recording_.processes[2].pid);
  EXPECT_EQ(recording_.processes[1].threads[0].state, RingState::kFollowed);
}

TEST_F(QemuProcessesTruth, TheParentsHistoryIsItsOwn) {
  Addresses steps = without_iterations(steps_.threads.at(0), *main_thread(0).code);
  EXPECT_TRUE(is_equal(history(0), steps));
}

TEST_F(QemuProcessesTruth, AChildsHistoryIsItsParentsAndThenItsOwn) {
  ASSERT_EQ(steps_.children.size(), 3u);
  auto child = steps_.children.begin();
  for (std::size_t process : {1u, 3u, 4u}) {
    const CodeImage& code = *main_thread(process).code;
    Addresses own = without_iterations(*child++, code);
    Addresses parents = without_iterations(steps_.threads.at(0), code);
    Addresses all = history(process);
    ASSERT_GT(all.size(), own.size());
    Addresses past(all.begin(), all.end() - static_cast<std::ptrdiff_t>(own.size()));
    Addresses present(all.end() - static_cast<std::ptrdiff_t>(own.size()), all.end());
    EXPECT_TRUE(is_equal(present, own)) << "process " << process;
    EXPECT_TRUE(begins_with(parents, past)) << "process " << process;
  }
}

TEST_F(QemuProcessesTruth, WhereAChildBeginsIsMarked) {
  const auto& records = main_thread(3).records;
  auto fork = std::find_if(records.begin() + 1, records.end(),
                           [](const BranchRecord& r) { return r.kind == RecordKind::kEnable; });
  ASSERT_NE(fork, records.end());
  EXPECT_EQ(fork->extra, static_cast<std::uint16_t>(EdgeCause::kFork));
  EXPECT_EQ(fork->to, (fork - 1)->to);
  EXPECT_EQ((fork - 1)->kind, RecordKind::kSystemCall);
}

TEST_F(QemuProcessesTruth, AnExecutedProgramIsRecordedFromItsFirstInstruction) {
  EXPECT_EQ(main_thread(1).records.back().extra, static_cast<std::uint16_t>(EdgeCause::kExec));
  auto steps = step_under_qemu({built_program("recursion"), "from-vfork"}, {"LANG=C"});
  ASSERT_TRUE(steps) << steps.error().to_string();
  EXPECT_TRUE(main_thread(2).complete);
  EXPECT_TRUE(is_equal(history(2), without_iterations(steps->threads.at(0), *main_thread(2).code)));
}

}  // namespace
}  // namespace tailtrace
