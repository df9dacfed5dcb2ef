// Code that comes and goes between two stops: each stretch of a history is read with the code that
// was there then.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "plugin/engines/perf/perf_engine.h"
#include "tests/guest/config.h"
#include "tests/guest/shown.h"
#include "tests/guest/truth.h"
#include "tests/guest/workload.h"
#include "tests/support/child.h"

namespace tailtrace::perf {
namespace {

constexpr std::uint64_t kPlace = 0x200000000000;  // outside of what a sanitizer has for itself
constexpr std::size_t kPage_bytes = 4096;

// Two loops of other lengths, with their branches in other places.
const Bytes kFirst = {0xb9, 5, 0, 0, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
const Bytes kSecond = {0x90, 0xb9, 7, 0, 0, 0, 0x83, 0xe9, 1, 0x90, 0x75, 0xfa, 0xc3};

void* place() { return reinterpret_cast<void*>(kPlace); }
void call_it() { reinterpret_cast<void (*)()>(kPlace)(); }

void put_into_file(const char* path, const Bytes& code) {
  int file = ::open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
  Bytes page = code;
  page.resize(kPage_bytes);
  ASSERT_EQ(::write(file, page.data(), page.size()), static_cast<ssize_t>(page.size()));
  ::close(file);
}

// As a library that is loaded, called and unloaded.
void run_from_file(const char* path) {
  int file = ::open(path, O_RDONLY);
  if (::mmap(place(), kPage_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0) ==
      MAP_FAILED)
    ::_exit(1);
  ::close(file);
  call_it();
  ::munmap(place(), kPage_bytes);
}

// As a compiler at run time writes it.
void run_generated(const Bytes& code) {
  void* at = ::mmap(place(), kPage_bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (at == MAP_FAILED) ::_exit(1);
  std::memcpy(at, code.data(), code.size());
  ::mprotect(at, kPage_bytes, PROT_READ | PROT_EXEC);
  call_it();
}

std::size_t calls_in(const std::vector<Address>& truth) {
  return static_cast<std::size_t>(std::count(truth.begin(), truth.end(), Address{kPlace}));
}

void expect_all(PerfEngine& engine, const Child& child) {
  auto taken = engine.snapshot({child.pid(), child.pid()}, {{child.registers().rip}, false}, ~0ull);
  ASSERT_TRUE(taken) << taken.error().to_string();
  Shown shown = show(*taken);
  std::vector<Address> truth = read_truth();
  EXPECT_EQ(shown.breaks, std::vector<std::size_t>{});
  EXPECT_EQ(shown.executed.size(), truth.size());
  EXPECT_TRUE(shown.executed == truth);
}

TEST(CodeChanges, FilesThatWereMappedAtOnePlaceOneAfterTheOther) {
  put_into_file("/tmp/first", kFirst);
  put_into_file("/tmp/second", kSecond);
  Child child({[] {
    for (int round = 0; round < 3; ++round) {
      run_from_file("/tmp/first");
      run_from_file("/tmp/second");
    }
  }});
  reset_truth();
  PerfEngine engine(real_kernel(), Hardware::kPt, config_of(1 << 20));
  ASSERT_TRUE(engine.start({child.pid(), child.pid()}));
  ASSERT_TRUE(child.run());
  EXPECT_EQ(calls_in(read_truth()), 6u);
  expect_all(engine, child);
}

TEST(CodeChanges, AFileThatIsGoneByNowIsAGapAndTheRestIsExact) {
  put_into_file("/tmp/gone", kFirst);
  put_into_file("/tmp/stays", kSecond);
  Child child({[] {
    run_from_file("/tmp/gone");
    ::unlink("/tmp/gone");
    work(300, {false, true});  // behind the gap decoding goes on at the next PSB
    run_from_file("/tmp/stays");
  }});
  reset_truth();
  PerfConfig config = config_of(1 << 20);
  config.psb_period = 0;
  PerfEngine engine(real_kernel(), Hardware::kPt, config);
  ThreadId thread{child.pid(), child.pid()};
  ASSERT_TRUE(engine.start(thread));
  ASSERT_TRUE(child.run());
  auto taken = engine.snapshot(thread, {{child.registers().rip}, false}, ~0ull);
  ASSERT_TRUE(taken) << taken.error().to_string();
  std::vector<Address> truth = read_truth();
  ASSERT_EQ(calls_in(truth), 2u);
  Shown shown = show(*taken);
  EXPECT_EQ(calls_in(shown.executed), 1u);
  EXPECT_FALSE(shown.breaks.empty());
  expect_stretches(shown, truth);
}

class GeneratedCode : public testing::TestWithParam<Hardware> {};

TEST_P(GeneratedCode, IsShownAsItWasAtEachStop) {
  Child child({[] { run_generated(kFirst); }, [] { run_generated(kSecond); },
               [] { run_generated(kFirst); }});
  reset_truth();
  PerfEngine engine(real_kernel(), GetParam(), config_of(1 << 20));
  ASSERT_TRUE(engine.start({child.pid(), child.pid()}));
  for (std::size_t stop = 1; stop <= 3; ++stop) {
    ASSERT_TRUE(child.run());
    EXPECT_EQ(calls_in(read_truth()), stop);
    expect_all(engine, child);
  }
}

INSTANTIATE_TEST_SUITE_P(Hardware, GeneratedCode, testing::Values(Hardware::kPt, Hardware::kBts),
                         [](const auto& info) {
                           return info.param == Hardware::kPt ? "Pt" : "Bts";
                         });

}  // namespace
}  // namespace tailtrace::perf
