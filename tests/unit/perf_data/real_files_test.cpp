// Real perf.data files, recorded on hardware by others; the code is not there, so this is about
// what the files say. What is expected was taken from them with perf itself.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "decoder/base/file.h"
#include "decoder/perf_data/recording.h"

namespace tailtrace::perf {
namespace {

class RealFiles : public testing::Test {
 protected:
  RealFiles() {
    const char* named = std::getenv("TAILTRACE_REAL_PT");
    folder_ = named != nullptr ? named : TAILTRACE_SOURCE_DIR "/../shared/data/real-pt";
    folder_ += "/perf_data_converter";
  }
  void SetUp() override {
    if (!std::filesystem::is_directory(folder_))
      GTEST_SKIP() << "no real files here; TAILTRACE_REAL_PT names their folder";
  }
  PerfData read(const std::string& name) {
    auto data = read_perf_data(folder_ + "/" + name);
    EXPECT_TRUE(data) << (data ? "" : data.error().to_string());
    return data ? std::move(*data) : PerfData();
  }
  std::string folder_;
};

template <class Event>
std::size_t count(const PerfData& data) {
  std::size_t found = 0;
  for (const RecordRef& ref : data.records) {
    auto record = data.parse(ref);
    EXPECT_TRUE(record);
    found += record && std::holds_alternative<Event>(record->body);
  }
  return found;
}

TEST_F(RealFiles, TheTraceAndTheRecordsAreThoseThatPerfShows) {
  for (const char* name : {"perf.data.intel_pt-4.14", "perf.data.piped.intel_pt-4.14"}) {
    SCOPED_TRACE(name);
    const bool is_file = std::string_view(name).find("piped") == std::string_view::npos;
    PerfData data = read(name);
    EXPECT_TRUE(data.problems.empty());
    EXPECT_EQ(data.auxtrace, kAuxtracePt);
    EXPECT_EQ(data.attrs.size(), 4u);
    EXPECT_EQ(data.cpu_id, "GenuineIntel,6,78,3");
    EXPECT_TRUE(data.clock());
    if (!is_file) continue;
    EXPECT_EQ(count<MmapEvent>(data), 66u);
    EXPECT_EQ(count<CommEvent>(data), 3u);
    EXPECT_EQ(count<AuxEvent>(data), 10u);
    EXPECT_EQ(count<SwitchEvent>(data), 152u);
    EXPECT_EQ(count<ItraceStartEvent>(data), 2u);
    EXPECT_EQ(data.build_ids.at("/lib64/ld-2.23.so").size(), 40u);
    ASSERT_EQ(data.aux.size(), 2u);
    for (const AuxPiece& piece : data.aux) {
      auto cut_out = read_file(folder_ + "/aux-" + std::to_string(piece.queue) + "-cpu" +
                                   std::to_string(piece.cpu) + "-tid" + std::to_string(piece.tid) +
                                   "-off" + std::to_string(piece.offset_bytes) + ".pt",
                               1 << 24);
      ASSERT_TRUE(cut_out);
      EXPECT_TRUE(std::ranges::equal(piece.bytes, *cut_out));
    }
  }
}

TEST_F(RealFiles, OnlyTheThreadThatWasTracedIsShown) {
  auto recording = PerfRecording::make(read("perf.data.intel_pt-4.14"), "");
  ASSERT_TRUE(recording);
  ASSERT_EQ((*recording)->threads().size(), 1u) << "others had the CPUs meanwhile";
  EXPECT_EQ((*recording)->threads()[0].thread, (ThreadId{3174, 3174}));
  EXPECT_EQ((*recording)->threads()[0].name, "echo");
}

TEST_F(RealFiles, StacksOfBranchesAreThoseThatPerfShows) {
  struct {
    const char* name;
    std::size_t samples;
  } kFiles[] = {{"perf.data.branch-4.14", 13}, {"perf.data.branch_stack_hw_index", 5}};
  for (auto [name, samples] : kFiles) {
    SCOPED_TRACE(name);
    PerfData data = read(name);
    EXPECT_EQ(count<Sample>(data), samples);
    auto recording = PerfRecording::make(std::move(data), "");
    ASSERT_TRUE(recording);
    EXPECT_EQ((*recording)->threads()[0].engine, "lbr");
  }
}

}  // namespace
}  // namespace tailtrace::perf
