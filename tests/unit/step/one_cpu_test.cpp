// Where a stepped program may run: on one processor while steps follow each other, else as before.
#include "plugin/engines/step/one_cpu.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/child.h"

namespace tailtrace {
namespace {

constexpr int kMany = 64;

int processors_of(pid_t tid) {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(tid, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

class SteppedPrograms : public testing::Test {
 protected:
  void SetUp() override {
    CPU_ZERO(&could_);
    ASSERT_EQ(::sched_getaffinity(0, sizeof could_, &could_), 0);
    if (all_ < 2) GTEST_SKIP() << "there is one processor";
  }
  void step(int times, std::optional<std::uint64_t> call = std::nullopt) {
    for (int i = 0; i < times; ++i) one_cpu_.step({child_.pid(), child_.pid()}, call);
  }
  void expect_processors(int count) {
    EXPECT_EQ(processors_of(child_.pid()), count);
    EXPECT_EQ(processors_of(::gettid()), count);
  }

  cpu_set_t could_;
  const int all_ = processors_of(::gettid());
  Child child_{{[] {}}};
  OneCpu one_cpu_;
};

TEST_F(SteppedPrograms, RunWhereTheirTracerDoesWhileStepsFollowEachOther) {
  step(kMany - 1);
  expect_processors(all_);
  step(1);
  expect_processors(1);
  one_cpu_.leave();
  expect_processors(all_);
  step(kMany);
  expect_processors(1);
}

TEST_F(SteppedPrograms, MakeStepsInRowsToo) {
  const ThreadId thread{child_.pid(), child_.pid()};
  one_cpu_.step(thread, std::nullopt, kMany - 1);
  expect_processors(all_);
  one_cpu_.step(thread, std::nullopt, kMany);
  expect_processors(1);
}

TEST_F(SteppedPrograms, AskWhereTheyMayRunAndAreToldTheTruth) {
  for (std::uint64_t call : {SYS_sched_getaffinity, SYS_clone, SYS_vfork}) {
    step(kMany);
    expect_processors(1);
    step(1, call);
    expect_processors(all_);
  }
  step(kMany, SYS_getpid);
  expect_processors(1);
}

TEST_F(SteppedPrograms, AreNotBoundWhileAnotherThreadMakesOne) {
  one_cpu_.step({child_.pid(), ::gettid()}, SYS_clone3);
  step(kMany);
  expect_processors(1);  // it is none of theirs, so it must have ended meanwhile
  one_cpu_.leave();
  one_cpu_.step({child_.pid(), child_.pid()}, SYS_clone3);
  for (int i = 0; i < kMany; ++i) one_cpu_.step({child_.pid(), ::gettid()}, std::nullopt);
  expect_processors(all_);
  one_cpu_.leave();
  step(kMany);
  expect_processors(1);
}

TEST_F(SteppedPrograms, KeepWhatSomebodyElseToldThemMeanwhile) {
  step(kMany);
  cpu_set_t bound;
  CPU_ZERO(&bound);
  ASSERT_EQ(::sched_getaffinity(child_.pid(), sizeof bound, &bound), 0);
  int other = 0;
  while (!CPU_ISSET(other, &could_) || CPU_ISSET(other, &bound)) ++other;
  cpu_set_t told;
  CPU_ZERO(&told);
  CPU_SET(other, &told);
  ASSERT_EQ(::sched_setaffinity(child_.pid(), sizeof told, &told), 0);
  one_cpu_.leave();
  EXPECT_EQ(processors_of(child_.pid()), 1);
  EXPECT_EQ(processors_of(::gettid()), all_);
}

TEST_F(SteppedPrograms, MayRunWhereTheyCouldWhenNobodyStepsThemAnyMore) {
  {
    OneCpu other;
    for (int i = 0; i < kMany; ++i) other.step({child_.pid(), child_.pid()}, std::nullopt);
    expect_processors(1);
  }
  expect_processors(all_);
}

}  // namespace
}  // namespace tailtrace
