// What the real kernel tells of threads beside a trace. Skipped where it lets nobody watch.
#include "plugin/engines/perf/sideband.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "decoder/symbols/mapping.h"
#include "plugin/engines/perf/breakpoints.h"
#include "plugin/engines/perf/process_code.h"
#include "tests/support/child.h"
#include "tests/support/debug_registers.h"
#include "tests/support/temp_folder.h"

namespace tailtrace::perf {
namespace {

__attribute__((noinline, noclone)) void reach(std::uint64_t i) {
  __asm__ volatile("" ::"r"(i) : "memory");
}

void map_code(const char* path) {
  int file = ::open(path, O_RDONLY);
  if (::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED) ::_exit(1);
  ::close(file);
}

template <class Body, class Test>
std::size_t count(const std::vector<ParsedRecord>& records, Test test) {
  return static_cast<std::size_t>(
      std::count_if(records.begin(), records.end(), [&](const ParsedRecord& record) {
        auto* body = std::get_if<Body>(&record.body);
        return body != nullptr && test(*body);
      }));
}

class Sidebands : public testing::Test {
 protected:
  void watch(const Child& child) {
    auto watched = sideband_.watch({child.pid(), -1});
    if (watched) return;
    // Only what the system does not let anybody do is a reason to look no further.
    ErrorCode code = watched.error().code;
    if (code != ErrorCode::kPermission && code != ErrorCode::kNoEngine)
      FAIL() << watched.error().to_string();
    GTEST_SKIP() << watched.error().to_string();
  }
  Sideband sideband_{real_kernel()};
};

TEST_F(Sidebands, TellOfCodeNamesAndThreadsOnce) {
  Child child({[] {
                 map_code("/proc/self/exe");
                 ::prctl(PR_SET_NAME, "another");
                 std::thread([] {}).join();
               },
               [] {}});
  watch(child);
  if (IsSkipped() || HasFatalFailure()) return;
  ASSERT_TRUE(child.run());
  auto told = sideband_.take();
  ASSERT_TRUE(told) << told.error().to_string();
  EXPECT_EQ(count<MmapEvent>(*told,
                             [](const MmapEvent& map) {
                               return map.path.find("unit_tests") != std::string::npos &&
                                      map.size_bytes == 4096;
                             }),
            1u);
  EXPECT_EQ(count<CommEvent>(*told, [](const CommEvent& c) { return c.name == "another"; }), 1u);
#ifdef __SANITIZE_THREAD__
  constexpr std::size_t kThreads = 2;  // one is the sanitizer's
#else
  constexpr std::size_t kThreads = 1;
#endif
  EXPECT_EQ(count<TaskEvent>(*told,
                             [&](const TaskEvent& task) {
                               return task.begins && task.thread.pid == child.pid() &&
                                      task.parent.tid == child.pid();
                             }),
            kThreads);
  EXPECT_TRUE(std::is_sorted(
      told->begin(), told->end(),
      [](const ParsedRecord& a, const ParsedRecord& b) { return *a.id.time_ns < *b.id.time_ns; }));
  ASSERT_TRUE(child.run());
  EXPECT_TRUE(sideband_.take()->empty());
}

// Of what came and went between two looks at the process.
TEST_F(Sidebands, TellWhichLibrariesWereAtAPlace) {
  TempFolder folder;
  const std::string paths[] = {folder.file("first.so"), folder.file("second.so")};
  for (const std::string& path : paths) std::filesystem::copy_file("/bin/true", path);
  Child child({[&] {
                 void* const place = reinterpret_cast<void*>(0x300000000);
                 for (const std::string& path : paths) {
                   const int file = ::open(path.c_str(), O_RDONLY);
                   if (::mmap(place, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file,
                              0) != place)
                     ::_exit(1);
                   ::munmap(place, 4096);
                 }
               },
               [] {}});
  watch(child);
  if (IsSkipped() || HasFatalFailure()) return;
  ProcessCode code(child.pid());
  ASSERT_TRUE(code.update({}, sideband_.now()));
  ASSERT_TRUE(child.run());
  auto told = sideband_.take();
  ASSERT_TRUE(told) << told.error().to_string();
  std::vector<MapChange> changes;
  for (ParsedRecord& record : *told)
    if (auto* map = std::get_if<MmapEvent>(&record.body))
      changes.push_back({sideband_.time_of(record), std::move(*map)});
  ASSERT_TRUE(code.update(std::move(changes), sideband_.now()));
  const auto former = parse_former_maps(code.former_maps());
  ASSERT_EQ(former.size(), 2u) << code.former_maps();
  EXPECT_EQ(former[0].mappings[0].path, paths[1]);
  EXPECT_EQ(former[0].until, std::nullopt);
  EXPECT_EQ(former[1].mappings[0].path, paths[0]);
  EXPECT_EQ(former[1].until, Epoch{1});
  EXPECT_EQ(code.begins().size(), 1u) << "though their code is the same";
}

// Twenty thousand samples go over each other in a ring of their own.
TEST_F(Sidebands, AreKeptHoweverManySamplesComeBesides) {
  if (std::string why = no_debug_registers(); !why.empty()) GTEST_SKIP() << why;
  Child child({[] {
    map_code("/proc/self/exe");
    for (std::uint64_t i = 0; i < 20000; ++i) reach(i);
  }});
  watch(child);
  if (IsSkipped() || HasFatalFailure()) return;
  BreakpointSpec spec;
  spec.address = {reinterpret_cast<std::uint64_t>(&reach)};
  auto samples = Marker::open(real_kernel(), child.pid(), spec, 4096);
  ASSERT_TRUE(samples) << samples.error().to_string();
  ASSERT_TRUE(child.run());
  auto log = samples->read(~0ull);
  ASSERT_TRUE(log);
  EXPECT_LT(log->hits.size(), log->count);
  EXPECT_EQ(count<MmapEvent>(*sideband_.take(), [](const MmapEvent&) { return true; }), 1u);
}

}  // namespace
}  // namespace tailtrace::perf
