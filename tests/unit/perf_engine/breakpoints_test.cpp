// Hardware breakpoints on the real kernel: real rings of both kinds of overwriting, with exact
// counts. Skipped where perf events are not allowed at all.
#include "plugin/engines/perf/breakpoints.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/hw_breakpoint.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <atomic>
#include <cstddef>
#include <optional>
#include <thread>

#include "plugin/engines/perf/marker_set.h"
#include "tests/support/child.h"
#include "tests/support/debug_registers.h"

namespace tailtrace::perf {
namespace {

constexpr std::uint64_t kFirstArgument = 1 << 5;  // asm/perf_regs.h: PERF_REG_X86_DI

__attribute__((noinline, noclone)) void marker(std::uint64_t i) {
  __asm__ volatile("" ::"r"(i) : "memory");
}
volatile std::uint64_t watched[8];

void hit(std::uint64_t first, std::uint64_t end) {
  for (; first < end; ++first) marker(first);
}

class Breakpoints : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string why = no_debug_registers(); !why.empty()) GTEST_SKIP() << why;
  }
  BreakpointSpec at_marker() const {
    BreakpointSpec spec;
    spec.address = {reinterpret_cast<std::uint64_t>(&marker)};
    spec.registers = kFirstArgument;
    return spec;
  }
  Marker must_open(const Child& child, const BreakpointSpec& spec, std::uint64_t ring = 16384) {
    auto opened = Marker::open(real_kernel(), child.pid(), spec, ring);
    if (!opened) throw std::runtime_error(opened.error().to_string());
    return std::move(*opened);
  }
};

// The newest hits are all there, consecutive, with the register that numbers them.
void expect_tail(const MarkerLog& log, std::uint64_t count) {
  EXPECT_EQ(log.count, count);
  ASSERT_FALSE(log.hits.empty());
  EXPECT_EQ(log.hits.back().number, count - 1);
  for (std::size_t i = 0; i < log.hits.size(); ++i) {
    const MarkerHit& hit = log.hits[i];
    ASSERT_EQ(hit.number, count - log.hits.size() + i);
    ASSERT_EQ(hit.registers, std::vector<std::uint64_t>{hit.number});
    ASSERT_EQ(hit.ip.value, reinterpret_cast<std::uint64_t>(&marker));
    ASSERT_GE(hit.time_ns, log.hits[i == 0 ? 0 : i - 1].time_ns);
  }
}

TEST_F(Breakpoints, AreRefusedWhereNoProgramIs) {
  Child child({[] {}});
  BreakpointSpec spec;
  for (std::uint64_t address : {0x8000000000000000, 0xffffffff81000000}) {
    spec.address = {address};
    auto opened = Marker::open(real_kernel(), child.pid(), spec, 16384);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::kUsage);
    EXPECT_EQ(opened.error().why, fmt::format("no program has the address {:#x}", address));
  }
  ASSERT_TRUE(child.run());
}

TEST_F(Breakpoints, LogTheNewestHitsOfManyAndCountThemAll) {
  Child child({[] { hit(0, 20000); }});
  Marker log = must_open(child, at_marker());
  ASSERT_TRUE(child.run());
  auto read = log.read(~0ull);
  ASSERT_TRUE(read) << read.error().to_string();
  expect_tail(*read, 20000);
  // A hit takes 56 bytes: header, ip, thread, time, count, registers' ABI and one register.
  EXPECT_EQ(read->hits.size(), 16384u / 56);
  EXPECT_EQ(log.read(7)->hits.size(), 7u);
}

TEST_F(Breakpoints, LogAllHitsOfAFewAndGoOn) {
  Child child({[] { hit(0, 5); }, [] { hit(5, 12); }});
  Marker log = must_open(child, at_marker());
  EXPECT_TRUE(log.read(~0ull)->hits.empty());
  ASSERT_TRUE(child.run());
  expect_tail(*log.read(~0ull), 5);
  EXPECT_EQ(log.read(~0ull)->hits.size(), 5u);
  ASSERT_TRUE(child.run());
  expect_tail(*log.read(~0ull), 12);
  EXPECT_EQ(log.read(~0ull)->hits.size(), 12u);
}

TEST_F(Breakpoints, CanBeReadWhileTheThreadRuns) {
  Child child({[] { hit(0, 50000); }});
  Marker log = must_open(child, at_marker());
  std::atomic<bool> stopped = false;
  std::uint64_t last = 0;
  auto read_once = [&] {
    auto read = log.read(~0ull);
    ASSERT_TRUE(read) << read.error().to_string();
    for (const MarkerHit& hit : read->hits)
      ASSERT_EQ(hit.registers, std::vector<std::uint64_t>{hit.number});
    ASSERT_GE(read->count, last);
    last = read->count;
  };
  std::thread reader([&] {
    while (!stopped) read_once();
  });
  bool ran = child.run();
  stopped = true;
  reader.join();
  ASSERT_TRUE(ran);
  read_once();
  EXPECT_EQ(last, 50000u);
}

TEST_F(Breakpoints, WatchDataThatIsWritten) {
  Child child({[] {
    for (std::uint64_t i = 0; i < 10; ++i) {
      watched[2] = i;
      watched[3] = i;
    }
  }});
  BreakpointSpec spec;
  spec.address = {reinterpret_cast<std::uint64_t>(&watched[2])};
  spec.on = BreakOn::kWrite;
  Marker log = must_open(child, spec);
  ASSERT_TRUE(child.run());
  EXPECT_EQ(log.read(~0ull)->count, 10u);
}

TEST_F(Breakpoints, EndThemselvesAfterSoManyHits) {
  Child child({[] { hit(0, 1000); }});
  Marker log = must_open(child, at_marker());
  ASSERT_TRUE(log.only(3));
  ASSERT_TRUE(child.run());
  auto read = log.read(~0ull);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->count, 3u);
}

TEST_F(Breakpoints, StopTheThreadAtTheInstruction) {
  Child child({[] { hit(0, 3); }});
  BreakpointSpec spec = at_marker();
  spec.stop = true;
  auto opened = Marker::open(real_kernel(), child.pid(), spec, 4096);
  ASSERT_TRUE(opened) << opened.error().to_string();
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_EQ(::ptrace(PTRACE_CONT, child.pid(), nullptr, 0), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child.pid(), &status, 0), child.pid());
    ASSERT_TRUE(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
    EXPECT_EQ(child.registers().rip, spec.address.value);
    EXPECT_EQ(child.registers().rdi, i);
  }
  EXPECT_TRUE(child.run());
}

TEST_F(Breakpoints, TellOfHitsWhileTheThreadRunsOn) {
  Child child({[] { hit(0, 10); }});
  auto alarm = Alarm::open(real_kernel(), child.pid(), at_marker());
  ASSERT_TRUE(alarm) << alarm.error().to_string();
  EXPECT_TRUE(alarm->wait(0)->empty());
  ASSERT_EQ(::ptrace(PTRACE_CONT, child.pid(), nullptr, 0), 0);
  std::vector<MarkerHit> hits;
  while (hits.size() < 10) {
    auto more = alarm->wait(-1);
    ASSERT_TRUE(more) << more.error().to_string();
    hits.insert(hits.end(), more->begin(), more->end());
  }
  for (std::uint64_t i = 0; i < 10; ++i)
    EXPECT_EQ(hits[i].registers, std::vector<std::uint64_t>{i});
  int status = 0;
  ASSERT_EQ(::waitpid(child.pid(), &status, 0), child.pid());
}

TEST_F(Breakpoints, AnAlarmThatNobodyTakesCountsWhatIsLost) {
  Child child({[] { hit(0, 1000); }});
  auto alarm = Alarm::open(real_kernel(), child.pid(), at_marker());
  ASSERT_TRUE(alarm) << alarm.error().to_string();
  ASSERT_TRUE(child.run());
  auto first = alarm->wait(0);
  ASSERT_TRUE(first) << first.error().to_string();
  EXPECT_EQ(first->size(), 4096u / 56);
  EXPECT_TRUE(alarm->wait(0)->empty());
  EXPECT_EQ(*alarm->count(), 1000u);
}

TEST_F(Breakpoints, MoveToAnotherAddress) {
  Child child({[] { watched[0] = 1; },
               [] {
                 watched[1] = 1;
                 watched[1] = 2;
               }});
  BreakpointSpec spec;
  spec.address = {reinterpret_cast<std::uint64_t>(&watched[1])};
  spec.on = BreakOn::kWrite;
  Marker log = must_open(child, spec);
  ASSERT_TRUE(child.run());
  EXPECT_EQ(*log.count(), 0u);
  ASSERT_TRUE(log.move_to({reinterpret_cast<std::uint64_t>(&watched[0])}));
  ASSERT_TRUE(log.move_to({reinterpret_cast<std::uint64_t>(&watched[1])}));
  ASSERT_TRUE(child.run());
  EXPECT_EQ(*log.count(), 2u);
}

TEST_F(Breakpoints, AThreadHasFourSlotsAndTheFifthIsRefusedByName) {
  Child child({});
  auto free = free_breakpoint_slots(real_kernel(), child.pid());
  ASSERT_TRUE(free);
  EXPECT_EQ(*free, 4);
  std::vector<Marker> held;
  for (int i = 0; i < 4; ++i) {
    BreakpointSpec spec = at_marker();
    spec.name = "marker " + std::to_string(i);
    held.push_back(must_open(child, spec, 4096));
    EXPECT_EQ(*free_breakpoint_slots(real_kernel(), child.pid()), 3 - i);
  }
  auto fifth = Marker::open(real_kernel(), child.pid(), at_marker(), 4096);
  ASSERT_FALSE(fifth);
  EXPECT_EQ(fifth.error().why,
            "all four debug registers of the thread are taken: marker 0, marker 1, marker 2, "
            "marker 3");
  held.clear();
  EXPECT_EQ(*free_breakpoint_slots(real_kernel(), child.pid()), 4);
}

TEST_F(Breakpoints, ShareTheirSlotsWithTheDebuggersOwn) {
  Child child({});
  auto poke = [&](int number, std::uint64_t value) {
    return ::ptrace(PTRACE_POKEUSER, child.pid(),
                    offsetof(struct user, u_debugreg) + 8 * static_cast<std::size_t>(number),
                    value);
  };
  ASSERT_EQ(poke(0, reinterpret_cast<std::uint64_t>(&watched[0])), 0);
  ASSERT_EQ(poke(7, 1 | 0xdul << 16), 0);  // enabled, on writes, 4 bytes
  EXPECT_EQ(*free_breakpoint_slots(real_kernel(), child.pid()), 3);
  ASSERT_EQ(poke(7, 0), 0);
}

// Three registers as a debugger sets them.
void take_registers(const Child& child, int count) {
  unsigned long control = 0;
  for (int i = 0; i < count; ++i) {
    const auto place = offsetof(struct user, u_debugreg) + 8 * static_cast<std::size_t>(i);
    ASSERT_EQ(
        ::ptrace(PTRACE_POKEUSER, child.pid(), place, reinterpret_cast<std::uint64_t>(&watched[i])),
        0);
    control |= 1ul << 2 * i | 0xdul << (16 + 4 * i);  // enabled, on writes, 4 bytes
  }
  ASSERT_EQ(
      ::ptrace(PTRACE_POKEUSER, child.pid(), offsetof(struct user, u_debugreg) + 8 * 7, control),
      0);
}

TEST_F(Breakpoints, OfADebuggerAreToldAsWhatIsNotOurs) {
  Child child({});
  take_registers(child, 3);
  BreakpointSpec spec = at_marker();
  spec.name = "who comes here";
  Marker first = must_open(child, spec, 4096);
  auto second = Marker::open(real_kernel(), child.pid(), spec, 4096);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().why, testing::HasSubstr("are taken: who comes here; 3 by a debugger's "
                                                     "hardware breakpoints and watchpoints"));
}

BreakpointSpec named(BreakpointSpec spec, const std::string& name, bool pinned) {
  spec.name = name;
  spec.pinned = pinned;
  return spec;
}

TEST_F(Breakpoints, FlexibleOnesGiveWayToPinnedOnesAndKeepWhatTheyLogged) {
  Child child({[] { hit(0, 5); }, [] { hit(5, 8); }, [] { hit(8, 10); }});
  take_registers(child, 2);
  MarkerSet set(real_kernel(), child.pid(), 4096);
  ASSERT_TRUE(set.add(named(at_marker(), "first", false)));
  ASSERT_TRUE(set.add(named(at_marker(), "second", false)));
  ASSERT_TRUE(child.run());
  ASSERT_TRUE(set.add(named(at_marker(), "pinned", true)));
  EXPECT_FALSE(set.waits(0));
  EXPECT_TRUE(set.waits(1));
  auto remarks = set.take_remarks();
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_THAT(remarks[0].what, testing::StartsWith("second of thread"));
  set.retry();
  EXPECT_TRUE(set.waits(1)) << "nothing is free";
  ASSERT_TRUE(child.run());
  EXPECT_EQ(set.read(0, 100)->count, 8u);
  EXPECT_EQ(set.read(1, 100)->count, 5u);
  EXPECT_EQ(set.read(2, 100)->count, 3u);
  EXPECT_TRUE(set.give_way()) << "a debugger asks";
  set.retry();
  EXPECT_FALSE(set.waits(0)) << "it did not take it";
  ASSERT_TRUE(child.run());
  auto log = set.read(0, 100);
  ASSERT_EQ(log->hits.size(), 10u);
  for (std::uint64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(log->hits[i].number, i);
    EXPECT_EQ(log->hits[i].registers, std::vector<std::uint64_t>{i});
  }
}

TEST_F(Breakpoints, OneThatIsPinnedIsRefusedAndOneThatIsNotWaits) {
  Child child({});
  // A debugger's stay taken until the thread ends, though it switches them off.
  take_registers(child, 3);
  std::optional<Marker> last = must_open(child, named(at_marker(), "the last", true), 4096);
  MarkerSet set(real_kernel(), child.pid(), 4096);
  auto refused = set.add(named(at_marker(), "pinned", true));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().why, testing::HasSubstr("the last; 3 by a debugger's"));
  EXPECT_EQ(set.size(), 0u);
  ASSERT_TRUE(set.add(named(at_marker(), "flexible", false)));
  EXPECT_TRUE(set.waits(0));
  ASSERT_EQ(set.take_remarks().size(), 1u);
  set.retry();
  EXPECT_TRUE(set.waits(0));
  last.reset();
  set.retry();
  EXPECT_FALSE(set.waits(0));
}

TEST_F(Breakpoints, RefuseWhatNoDebugRegisterCanWatch) {
  for (auto [size, address] : {std::pair{3, 0x1000}, {16, 0x1000}, {0, 0x1000}, {8, 0x1004}}) {
    BreakpointSpec spec;
    spec.address = {static_cast<std::uint64_t>(address)};
    spec.on = BreakOn::kWrite;
    spec.size_bytes = static_cast<std::uint8_t>(size);
    auto log = Marker::open(real_kernel(), 0, spec, 4096);
    ASSERT_FALSE(log) << size;
    EXPECT_EQ(log.error().code, ErrorCode::kUsage);
  }
}

}  // namespace
}  // namespace tailtrace::perf
