// Steps in a row, in a tracer of the test's own, and what the proxy asks for.
#include "plugin/server/below/gdbserver_preload/row_of_steps.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "decoder/base/bytes.h"
#include "decoder/code/instruction.h"
#include "plugin/server/recording/stepper.h"
#include "tests/support/child.h"
#include "tests/support/fake_link.h"
#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t kEverywhere = ~0ull;

long traced(int request, pid_t pid, void* address, void* data) {
  return ::ptrace(static_cast<__ptrace_request>(request), pid, address, data);
}

void works_and_calls() {
  for (int i = 0; i < 300; ++i) __asm__ volatile("");
  (void)::getppid();
}

void waits() { (void)::pause(); }

class RowsOfSteps : public testing::Test {
 protected:
  // A server hears of all that end; here those of other tests may be left.
  void SetUp() override {
    siginfo_t ended{};
    do ended.si_pid = 0;
    while (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | __WALL) == 0 && ended.si_pid != 0);
  }
  // One step as the server makes it, and its row. Where the thread is then.
  std::uint64_t row(Child& child, std::uint32_t most, std::uint64_t end = kEverywhere) {
    memory_.within = {0, end};
    memory_.ranges = 1;
    memory_.code[0] = code_;
    memory_.most_steps = most;
    memory_.steps = 0;
    memory_.thread = child.pid();
    EXPECT_EQ(::ptrace(PTRACE_SINGLESTEP, child.pid(), nullptr, nullptr), 0);
    RowOfSteps(memory_, traced).follow(child.pid());
    EXPECT_EQ(::waitpid(child.pid(), &status_, __WALL), child.pid());
    return child.registers().rip;
  }

  StepRowMemory memory_{};
  StepRowMemory::Range code_{0, kEverywhere};
  int status_ = 0;
};

TEST_F(RowsOfSteps, AreTheStepsOfThoseWhoMakeThemOneByOne) {
  Child one({works_and_calls}), by_rows({works_and_calls});
  ASSERT_TRUE(one.run() && by_rows.run());
  std::vector<std::uint64_t> truth, pcs;
  for (int i = 0; i < 1000 && one.step(); ++i) truth.push_back(one.registers().rip);
  std::uint32_t longest = 0;
  while (pcs.size() < truth.size()) {
    const std::uint64_t pc = row(by_rows, 100);
    longest = std::max(longest, memory_.steps.load());
    pcs.insert(pcs.end(), memory_.pcs, memory_.pcs + memory_.steps);
    pcs.push_back(pc);
  }
  pcs.resize(truth.size());
  EXPECT_EQ(pcs, truth);
  EXPECT_EQ(longest, 100u);
}

TEST_F(RowsOfSteps, EndBeforeASystemCall) {
  Child child({works_and_calls});
  ASSERT_TRUE(child.run());
  const std::uint16_t kSystemCall = 0x050f;  // little-endian
  std::uint64_t pc = 0;
  do pc = row(child, 200);
  while (memory_.steps == 200);
  EXPECT_EQ(std::memcmp(reinterpret_cast<const void*>(pc), &kSystemCall, 2), 0);
}

TEST_F(RowsOfSteps, EndOutsideOfTheirCode) {
  Child child({works_and_calls});
  ASSERT_TRUE(child.run());
  EXPECT_NE(row(child, 100, 1), 0u);
  EXPECT_EQ(memory_.steps, 0u);
  code_.begin = child.registers().rip + 0x1000000;
  EXPECT_NE(row(child, 100), 0u);
  EXPECT_EQ(memory_.steps, 0u);
}

TEST_F(RowsOfSteps, EndWithASignalThatTheServerFinds) {
  Child child({works_and_calls});
  ASSERT_TRUE(child.run());
  (void)row(child, 0);
  ::kill(child.pid(), SIGUSR1);
  (void)row(child, 100);
  EXPECT_EQ(memory_.steps, 0u);
  EXPECT_TRUE(WIFSTOPPED(status_) && WSTOPSIG(status_) == SIGUSR1);
}

TEST_F(RowsOfSteps, EndWhereTheStepWaitsAndAnotherThreadTellsOfSomething) {
  Child child({waits}), other({works_and_calls});
  do (void)row(child, 200);
  while (memory_.steps == 200 || child.registers().rax != SYS_pause);
  ::kill(other.pid(), SIGKILL);
  memory_.steps = 0;
  memory_.thread = child.pid();
  ASSERT_EQ(::ptrace(PTRACE_SINGLESTEP, child.pid(), nullptr, nullptr), 0);
  RowOfSteps(memory_, traced).follow(child.pid());
  EXPECT_EQ(memory_.steps, 0u);
  EXPECT_EQ(::waitpid(child.pid(), &status_, WNOHANG), 0);
}

TEST_F(RowsOfSteps, AreMadeOfTheThreadThatIsNamedOnly) {
  Child child({works_and_calls});
  ASSERT_TRUE(child.run());
  memory_.thread = child.pid() + 1;
  memory_.most_steps = 100;
  RowOfSteps(memory_, traced).follow(child.pid());
  EXPECT_EQ(memory_.steps, 0u);
  EXPECT_EQ(memory_.thread, child.pid() + 1);
}

TEST(IsToBeAskedAbout, WhatTheRecorderSeesFirst) {
  const std::vector<Bytes> codes = {{0x90},
                                    {0x0f, 0x05},
                                    {0x48, 0x0f, 0x05},
                                    {0x66, 0x0f, 0x05},
                                    {0x0f, 0x34},
                                    {0xcd, 0x80},
                                    {0xf3, 0xa4},
                                    {0xf3, 0x48, 0xab},
                                    {0xf2, 0xae},
                                    {0xa4},
                                    {0x48, 0xab},
                                    {0xf3, 0xc3},
                                    {0xf3, 0x0f, 0x10},
                                    {0x0f, 0x1f, 0x00},
                                    {0xe8, 0, 0, 0, 0},
                                    {0xc5, 0xf8, 0x77},
                                    {0x67, 0xf3, 0xa6},
                                    {0xf3, 0x90},
                                    {0x0f, 0xb6, 0x05},
                                    {0xb8, 0x0f, 0x05, 0, 0}};
  for (Bytes code : codes) {
    const std::string digits = to_hex(code);
    code.resize(16);
    const auto insn = decode_instruction(code, Address{0x1000});
    ASSERT_TRUE(insn) << digits;
    const bool is_seen_first =
        insn->kind == InstructionClass::kSystemCall || insn->kind == InstructionClass::kRepString;
    EXPECT_EQ(is_to_be_asked_about(load<std::uint64_t>(code, 0)), is_seen_first) << digits;
  }
  EXPECT_TRUE(is_to_be_asked_about(0xcc));                 // a breakpoint
  EXPECT_TRUE(is_to_be_asked_about(0x6666666666666666u));  // nobody knows of what
}

TEST(MayLeadBack, IsSaidOfConditionalBranchesToLowerAddresses) {
  const std::vector<Bytes> codes = {{0x75, 0xf0},
                                    {0x75, 0x10},
                                    {0x0f, 0x85, 0xf0, 0xff, 0xff, 0xff},
                                    {0x0f, 0x85, 0xf0, 0, 0, 0},
                                    {0xe2, 0xf0},
                                    {0xe3, 0x10},
                                    {0xe0, 0xf0},
                                    {0xeb, 0xf0},
                                    {0x90},
                                    {0x78, 0x80},
                                    {0x0f, 0x1f, 0x00}};
  for (Bytes code : codes) {
    const std::string digits = to_hex(code);
    code.resize(16);
    const auto insn = decode_instruction(code, Address{0x100000});
    ASSERT_TRUE(insn) << digits;
    EXPECT_EQ(may_lead_back(load<std::uint64_t>(code, 0)), RepeatRun::may_lead_back(*insn))
        << digits;
  }
}

// This process, as if it stood in code of its own, the same all over.
struct RowSession {
  const ThreadId me{::getpid(), ::getpid()};
  const std::uint64_t pc;
  const std::array<std::uint8_t, 2> code;  // again and again
  const std::string id = "p" + fmt::format("{:x}.{:x}", me.pid, me.tid);
  EndSignals signals;
  StepRow row = *StepRow::make();
  Below below{std::make_unique<FakeLink>([this](const std::string& r) -> std::vector<std::string> {
                if (r == "g") return {std::string(256, '0') + digits(pc) + std::string(56, '0')};
                return {"OK"};
              }),
              signals};
  TempFolder folder;
  StepEngine engine{folder.path(), {64}, [this](ThreadId, Address, std::span<std::uint8_t> out) {
                      for (std::size_t i = 0; i < out.size(); ++i) out[i] = code[i % 2];
                      return out.size();
                    }};
  Recorder recorder{below, engine, &engine};
  StopJudge judge{below, recorder};
  Stepper stepper{below, recorder, judge};
  StepRowMemory* memory = nullptr;  // as the library in the server has it

  explicit RowSession(std::uint64_t at = reinterpret_cast<std::uint64_t>(&works_and_calls),
                      std::array<std::uint8_t, 2> all = {0x90, 0x90})
      : pc(at), code(all) {
    static_cast<FakeLink&>(below.link()).its_row = &row;
    row.become_its(3);
    const int fd = std::atoi(::getenv(kStepRowVariable));
    ::unsetenv(kStepRowVariable);
    memory = static_cast<StepRowMemory*>(
        ::mmap(nullptr, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    ::close(fd);
    EXPECT_TRUE(recorder.start(me));
  }
  ~RowSession() { ::munmap(memory, sizeof *memory); }

  static std::string digits(std::uint64_t value) {
    return fmt::format("{:016x}", __builtin_bswap64(value));
  }
  bool is_in_code(std::uint64_t at) const {
    return std::any_of(memory->code, memory->code + memory->ranges,
                       [&](const auto& range) { return range.begin <= at && at < range.end; });
  }
  // The program has made a step, or a row of them, to there.
  Stepper::Verdict stopped(std::uint64_t at) {
    const std::string told = "T05thread:" + id + ";10:" + digits(at) + ";";
    stepper.note_row();
    return *stepper.stopped(*rsp::parse_stop_reply(told));
  }
};

TEST(Stepper, AsksForARowAndRecordsWhatNobodyToldOf) {
  RowSession s;
  ASSERT_TRUE(s.stepper.resume("vCont;c:" + s.id, {}));
  EXPECT_EQ(s.stopped(s.pc + 1), Stepper::Verdict::kGoesOn);
  EXPECT_EQ(s.memory->thread, s.me.tid);
  EXPECT_TRUE(s.is_in_code(s.pc));
  EXPECT_FALSE(s.is_in_code(reinterpret_cast<std::uint64_t>(&s)));
  s.memory->thread = 0;
  s.memory->pcs[0] = s.pc + 2;
  s.memory->pcs[1] = s.pc + 3;
  s.memory->steps = 2;
  EXPECT_EQ(s.stopped(s.pc + 4), Stepper::Verdict::kGoesOn);
  EXPECT_EQ(s.engine.snapshot(s.me, {{s.pc + 4}, false}, ~0ull)->records.back().insns, 4u);
  EXPECT_EQ(s.memory->thread, s.me.tid);
  EXPECT_EQ(s.memory->steps, 0u);
}

TEST(StepRow, IsAskedForInTheCodeNextToTheThreadWhereThereIsMuch) {
  RowSession s;
  std::vector<StepRow::Range> code;
  for (std::uint64_t at = 0x1000; at <= 0x3000; at += 0x10) code.push_back({{at}, {at + 8}});
  for (const std::uint64_t at : {0x1001, 0x2004, 0x3000}) {
    s.row.ask({.thread = s.me, .pc = {at}, .code = code});
    EXPECT_EQ(s.memory->ranges, StepRowMemory::kMost_ranges);
    EXPECT_TRUE(s.is_in_code(at)) << at;
  }
  EXPECT_FALSE(s.is_in_code(0x1001));
}

TEST(Stepper, AsksForNoneBeyondTheRangeThatTheDebuggerSteps) {
  RowSession s;
  ASSERT_TRUE(s.stepper.resume(fmt::format("vCont;r{:x},{:x}:{}", s.pc, s.pc + 9, s.id), {}));
  EXPECT_EQ(s.stopped(s.pc + 1), Stepper::Verdict::kGoesOn);
  EXPECT_EQ(s.memory->thread, s.me.tid);
  EXPECT_EQ(s.memory->within.begin, s.pc);
  EXPECT_EQ(s.memory->within.end, s.pc + 9);
}

// Whoever takes a thread through loops there sees each branch back, where it leads, and the way
// out.
TEST(Stepper, AsksForRowsWithoutLoopsInTheKernelsCode) {
  RowSession s(::getauxval(AT_SYSINFO_EHDR) + 0x400);
  ASSERT_TRUE(s.stepper.resume("vCont;c:" + s.id, {}));
  EXPECT_EQ(s.stopped(s.pc + 1), Stepper::Verdict::kGoesOn);
  EXPECT_EQ(s.memory->thread, s.me.tid);
  EXPECT_EQ(s.memory->ends_at_loops, 1u);
  EXPECT_TRUE(s.is_in_code(s.pc));
  EXPECT_FALSE(s.is_in_code(reinterpret_cast<std::uint64_t>(&works_and_calls)));
}

TEST(Stepper, AsksForNoneAtABranchBackThere) {
  RowSession s(::getauxval(AT_SYSINFO_EHDR) + 0x400, {0x75, 0xf0});  // JNE to 14 bytes before
  ASSERT_TRUE(s.stepper.resume("vCont;c:" + s.id, {}));
  EXPECT_EQ(s.stopped(s.pc - 14), Stepper::Verdict::kGoesOn);
  EXPECT_EQ(s.memory->thread, 0);
}

TEST(Stepper, AsksForNoneWhileMemoryIsWatched) {
  RowSession s;
  s.stepper.note_request("Z2,1000,8", s.me.pid);
  ASSERT_TRUE(s.stepper.resume("vCont;c:" + s.id, {}));
  EXPECT_EQ(s.stopped(s.pc + 1), Stepper::Verdict::kGoesOn);
  EXPECT_EQ(s.memory->thread, 0);
}

}  // namespace
}  // namespace tailtrace
