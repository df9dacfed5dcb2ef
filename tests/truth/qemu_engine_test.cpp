// QemuEngine at the stops of a debugger: qemu's own stub, spoken to directly, says where the
// program stands.
#include "plugin/engines/qemu/qemu_engine.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>

#include "plugin/server/rsp/connection.h"
#include "tests/support/qemu_recording.h"
#include "tests/support/qemu_steps.h"
#include "tests/support/unfold.h"

namespace tailtrace {
namespace {

// As much of a debugger as asks one question at a time.
class Debugger {
 public:
  explicit Debugger(UniqueFd stub) : connection_(std::move(stub)) {}

  std::string ask(const std::string& question) {
    EXPECT_TRUE(connection_.send(question));
    for (;;) {
      auto frame = connection_.next();
      if (!frame) return "";
      if (*frame && (*frame)->kind == rsp::Frame::Kind::kPacket) {
        std::string answer;
        EXPECT_TRUE(rsp::expand_runs((*frame)->payload, answer));
        return answer;
      }
      if (*frame) continue;
      pollfd ready{connection_.in(), POLLIN, 0};
      ::poll(&ready, 1, -1);
      if (!connection_.receive()) return "";
    }
  }

  // Behind the 16 general registers (gdb's numbering for x86-64).
  std::uint64_t pc() {
    std::string registers = ask("g");
    std::uint64_t pc = 0;
    for (std::size_t i = 8; i-- > 0;)
      pc = pc << 8 | std::stoull(registers.substr(2 * (128 + i), 2), nullptr, 16);
    return pc;
  }
  void run_to(std::uint64_t address) {
    std::string place = fmt::format("0,{:x},1", address);
    EXPECT_EQ(ask("Z" + place), "OK");
    EXPECT_EQ(ask("c").substr(0, 3), "T05");
    EXPECT_EQ(ask("z" + place), "OK");
    EXPECT_EQ(pc(), address);
  }
  void step() { EXPECT_EQ(ask("s").substr(0, 3), "T05"); }

 private:
  rsp::Connection connection_;
};

class QemuEngineTest : public testing::Test {
 protected:
  void SetUp() override {
    program_ = built_program("recursion");
    QemuOptions options = test_options({program_});
    options.with_stub = true;
    UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
    options.stdio = {nothing.get(), nothing.get(), 2};
    auto process = QemuProcess::launch(options);
    ASSERT_TRUE(process) << process.error().to_string();
    process_ = std::make_unique<QemuProcess>(std::move(*process));
    auto stub = process_->connect_stub();
    ASSERT_TRUE(stub) << stub.error().to_string();
    debugger_ = std::make_unique<Debugger>(std::move(*stub));
    thread_ = {process_->pid(), process_->pid()};
    open({});
  }

  void open(QemuEngine::Options options) {
    auto engine = QemuEngine::open(process_->process_folder(), options);
    ASSERT_TRUE(engine) << engine.error().to_string();
    engine_ = std::move(*engine);
  }
  std::uint64_t place(const std::string& function) {
    return address_of(program_, function).value_or(0);
  }
  // The history at the stop where the program stands now, closed there.
  Addresses history() {
    auto snapshot = engine_->snapshot(thread_, {{debugger_->pc()}, false}, ~0ull);
    EXPECT_TRUE(snapshot) << snapshot.error().to_string();
    if (!snapshot) return {};
    EXPECT_EQ(snapshot->records.back().kind, RecordKind::kDisable);
    EXPECT_EQ(snapshot->records.back().from.value, debugger_->pc());
    code_ = snapshot->code;
    Unfolded unfolded = unfold(*snapshot, false);
    EXPECT_EQ(unfolded.problem, "");
    return unfolded.executed;
  }
  // What stepping sees from one address to the next visit of another.
  Addresses steps_between(std::uint64_t from, std::uint64_t to) {
    auto steps = step_under_qemu({program_}, kTestEnvironment);
    EXPECT_TRUE(steps);
    if (!steps) return {};
    Addresses all = without_iterations(steps->threads.at(0), *code_);
    auto begin = std::find(all.begin(), all.end(), from);
    return Addresses(begin, std::find(begin, all.end(), to));
  }

  std::string program_;
  std::unique_ptr<QemuProcess> process_;
  std::unique_ptr<Debugger> debugger_;
  std::unique_ptr<QemuEngine> engine_;
  ThreadId thread_;
  std::shared_ptr<const CodeImage> code_;
};

TEST_F(QemuEngineTest, EachStepAddsWhatWasStepped) {
  debugger_->run_to(place("main"));
  ASSERT_TRUE(engine_->start(thread_));
  EXPECT_TRUE(engine_->is_recording(thread_));
  EXPECT_TRUE(engine_->start(thread_));  // changes nothing
  Addresses stepped;
  EXPECT_EQ(history(), stepped);
  for (int i = 0; i < 300; ++i) {
    stepped.push_back(debugger_->pc());
    debugger_->step();
    ASSERT_TRUE(is_equal(history(), without_iterations(stepped, *code_))) << "step " << i;
  }
}

TEST_F(QemuEngineTest, WhatRanBetweenTwoBreakpointsIsWhatSteppingSaw) {
  debugger_->run_to(place("main"));
  ASSERT_TRUE(engine_->start(thread_));
  debugger_->run_to(place("fibonacci"));
  Addresses all = history();
  EXPECT_GT(all.size(), 1000u);
  EXPECT_TRUE(is_equal(all, steps_between(place("main"), place("fibonacci"))));
}

TEST_F(QemuEngineTest, HistoryFromTheProgramsStartIsThereWhenAskedFor) {
  open({.since_start = true});
  debugger_->run_to(place("main"));
  ASSERT_TRUE(engine_->start(thread_));
  Addresses before = history();
  ASSERT_FALSE(before.empty());
  EXPECT_TRUE(is_equal(before, steps_between(before.front(), place("main"))));
}

TEST_F(QemuEngineTest, StoppingDropsWhatWasRecorded) {
  debugger_->run_to(place("main"));
  ASSERT_TRUE(engine_->start(thread_));
  debugger_->run_to(place("fibonacci"));
  EXPECT_FALSE(history().empty());
  ASSERT_TRUE(engine_->stop(thread_));
  EXPECT_FALSE(engine_->is_recording(thread_));
  auto stopped = engine_->snapshot(thread_, {{place("fibonacci")}, false}, ~0ull);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::kGone);
  EXPECT_EQ(engine_->stop(thread_).error().code, ErrorCode::kGone);
  ASSERT_TRUE(engine_->start(thread_));
  EXPECT_TRUE(history().empty());
}

TEST_F(QemuEngineTest, TheNewestRecordsAreWhatALimitLeaves) {
  debugger_->run_to(place("main"));
  ASSERT_TRUE(engine_->start(thread_));
  debugger_->run_to(place("fibonacci"));
  Addresses all = history();
  auto few = engine_->snapshot(thread_, {{place("fibonacci")}, false}, 10);
  ASSERT_TRUE(few);
  EXPECT_FALSE(few->complete);
  EXPECT_LE(few->records.size(), 12u);  // the owed branch and the closing record
  Addresses tail = unfold(*few, false).executed;
  ASSERT_LT(tail.size(), all.size());
  all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(tail.size()));
  EXPECT_TRUE(is_equal(tail, all));
}

TEST_F(QemuEngineTest, TheHeadMovesOnlyWithTheProgram) {
  debugger_->run_to(place("main"));
  auto before = engine_->head(thread_);
  ASSERT_TRUE(before);
  EXPECT_EQ(engine_->head(thread_).value(), *before);
  debugger_->run_to(place("fibonacci"));
  EXPECT_GT(engine_->head(thread_).value(), *before);
}

TEST_F(QemuEngineTest, AThreadThatDoesNotExistIsGone) {
  ThreadId nobody{thread_.pid, thread_.tid + 1};
  EXPECT_EQ(engine_->start(nobody).error().code, ErrorCode::kGone);
  EXPECT_EQ(engine_->head(nobody).error().code, ErrorCode::kGone);
  EXPECT_EQ(engine_->last_snapshot(nobody, 1).error().code, ErrorCode::kGone);
  EXPECT_FALSE(engine_->is_recording(nobody));
}

}  // namespace
}  // namespace tailtrace
