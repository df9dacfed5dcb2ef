// What a killed program leaves behind, and what is read while a program runs on, against what
// single-stepping it saw.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "plugin/engines/qemu/qemu_engine.h"
#include "tests/support/qemu_recording.h"
#include "tests/support/qemu_steps.h"
#include "tests/support/unfold.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t kRecords = 1 << 10;

// One round of the program `rounds`, as stepping it saw it.
Addresses one_round(std::uint64_t begin) {
  auto steps = step_under_qemu({built_program("rounds"), "3"}, kTestEnvironment);
  if (!steps) return {};
  const Addresses& all = steps->threads.at(0);
  auto first = std::find(all.begin(), all.end(), begin);
  auto second = std::find(first + 1, all.end(), begin);
  auto third = std::find(second + 1, all.end(), begin);
  if (third == all.end() || !std::equal(first, second, second, third)) return {};
  return Addresses(first, second);
}

// Whether the addresses are rounds and nothing else, from within one to within another.
testing::AssertionResult is_rounds(const Addresses& history, const Addresses& round) {
  auto begin = std::find(history.begin(), history.end(), round.front());
  if (begin == history.end()) return testing::AssertionFailure() << "no round begins";
  auto before = static_cast<std::size_t>(begin - history.begin());
  std::size_t at = (round.size() - before % round.size()) % round.size();
  for (std::size_t i = 0; i < history.size(); ++i, at = (at + 1) % round.size())
    if (history[i] != round[at])
      return testing::AssertionFailure()
             << "instruction " << i << " of " << history.size() << " is that at " << std::hex
             << history[i] << ", not at " << round[at];
  return testing::AssertionSuccess();
}

// The program `rounds` that runs for ever, recorded into a small ring, which holds nothing but
// rounds.
class QemuEndless : public testing::Test {
 protected:
  void SetUp() override {
    std::string program = built_program("rounds");
    auto begin = address_of(program, "round_begin");
    ASSERT_TRUE(begin);
    round_ = one_round(*begin);
    ASSERT_GT(round_.size(), 100u);
    QemuOptions options = test_options({program, "-1"});
    options.ring_records = kRecords;
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    UniqueFd out(ends[0]), in(ends[1]), nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
    options.stdio = {nothing.get(), in.get(), 2};
    auto process = QemuProcess::launch(options);
    ASSERT_TRUE(process) << process.error().to_string();
    process_ = std::make_unique<QemuProcess>(std::move(*process));
    char letter;
    ASSERT_EQ(::read(out.get(), &letter, 1), 1);
    auto engine = QemuEngine::open(process_->process_folder());
    ASSERT_TRUE(engine) << engine.error().to_string();
    engine_ = std::move(*engine);
    thread_ = {process_->pid(), process_->pid()};
    go_on();
  }

  Position head() { return engine_->head(thread_).value(); }
  // Until the ring has been overwritten once more.
  void go_on() {
    for (std::uint64_t until = head().value + 2 * kRecords; head().value < until;) ::sched_yield();
  }
  void kill() {
    ASSERT_EQ(::kill(process_->pid(), SIGKILL), 0);
    auto status = process_->wait();
    ASSERT_TRUE(status);
    ASSERT_TRUE(WIFSIGNALED(*status) && WTERMSIG(*status) == SIGKILL);
  }

  Addresses round_;
  std::unique_ptr<QemuProcess> process_;
  std::unique_ptr<QemuEngine> engine_;
  ThreadId thread_;
};

TEST_F(QemuEndless, IsReadWhileItRunsOn) {
  constexpr int kLooks = 300, kMostLooks = 100'000;  // one that is not overwritten may take many
  std::uint64_t newest = 0, read = 0;
  for (int i = 0; i < kLooks || (read == 0 && i < kMostLooks); ++i) {
    auto snapshot = engine_->last_snapshot(thread_, kRecords);
    ASSERT_TRUE(snapshot) << snapshot.error().to_string();
    EXPECT_GE(snapshot->first.value, newest);
    newest = snapshot->first.value;
    Unfolded history = unfold(*snapshot, false);
    ASSERT_EQ(history.problem, "");
    // All of it may have been overwritten while it was copied.
    if (history.executed.size() < round_.size()) continue;
    ASSERT_TRUE(is_rounds(history.executed, round_));
    ++read;
  }
  EXPECT_GT(read, 0u);
  auto status = process_->try_wait();
  ASSERT_TRUE(status);
  EXPECT_FALSE(*status) << "it ended";
}

TEST_F(QemuEndless, LeavesAllItsLastRecordsWhenItIsKilled) {
  kill();
  auto snapshot = engine_->last_snapshot(thread_, ~0ull);
  ASSERT_TRUE(snapshot) << snapshot.error().to_string();
  // All but the slot being written, and the record that closes the history.
  EXPECT_EQ(snapshot->records.size(), kRecords - 1 + 1);
  EXPECT_EQ(snapshot->first.value, head().value - (kRecords - 1));
  EXPECT_EQ(snapshot->records.back().kind, RecordKind::kDisable);
  EXPECT_EQ(snapshot->records.back().extra, static_cast<std::uint16_t>(EdgeCause::kSignal));
  Unfolded history = unfold(*snapshot, false);
  EXPECT_EQ(history.problem, "");
  EXPECT_GT(history.executed.size(), kRecords);
  EXPECT_TRUE(is_rounds(history.executed, round_));
}

TEST_F(QemuEndless, IsReadAgainFromItsFolderAfterItWasKilled) {
  kill();
  auto before = engine_->last_snapshot(thread_, ~0ull);
  auto engine = QemuEngine::open(process_->process_folder());
  ASSERT_TRUE(before && engine);
  auto after = (*engine)->last_snapshot(thread_, ~0ull);
  ASSERT_TRUE(after) << after.error().to_string();
  EXPECT_EQ(after->records, before->records);
  EXPECT_TRUE(is_rounds(unfold(*after, false).executed, round_));
  for (std::uint64_t limit : {~std::uint64_t{0}, std::uint64_t{100}}) {
    auto copied = (*engine)->last_snapshot(thread_, limit);
    auto in_place = (*engine)->open_thread(thread_, limit);
    ASSERT_TRUE(copied && in_place);
    const ThreadSnapshot all = History(in_place->frame, in_place->source, {}).snapshot();
    EXPECT_EQ(all.records, copied->records);
    EXPECT_EQ(all.first, copied->first);
    EXPECT_EQ(all.complete, copied->complete);
  }
}

// The program ends by the signal, in the thread that stepping it saw as `thread`. Of its
// instructions the last `untold` were begun, but not executed.
void expect_whole(const std::vector<std::string>& program, int signal, std::size_t thread,
                  std::size_t untold) {
  auto run = step_and_record(program);
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_EQ(WTERMSIG(run->recording.status), signal);
  const ThreadSnapshot& snapshot = run->recording.processes.at(0).threads.at(0).snapshot;
  EXPECT_TRUE(snapshot.complete);
  Unfolded history = unfold(snapshot, false);
  EXPECT_EQ(history.problem, "");
  Addresses steps = without_iterations(run->steps.threads.at(thread), *snapshot.code);
  ASSERT_GT(steps.size(), untold);
  std::uint64_t last = steps.back();
  steps.resize(steps.size() - untold);
  EXPECT_TRUE(is_equal(history.executed, steps));
  if (untold != 0) {
    EXPECT_EQ(snapshot.records.back().from.value, last);
  }
}

TEST(QemuKilledTruth, AProgramThatKillsItselfIsRecordedToItsLastInstruction) {
  expect_whole({built_program("rounds"), "50", "kill"}, SIGKILL, 0, 0);
}

TEST(QemuKilledTruth, SoIsOneThatAborts) {
  expect_whole({built_program("rounds"), "50", "abort"}, SIGABRT, 0, 0);
}

TEST(QemuKilledTruth, OneThatFaultsIsRecordedUpToTheInstructionThatDoes) {
  expect_whole({built_program("crashes_in_thread")}, SIGSEGV, 3, 1);
}

}  // namespace
}  // namespace tailtrace
