// Libraries that took each other's place in a recorded program.
#include <gtest/gtest.h>

#include <algorithm>

#include "decoder/perf_data/program_code.h"
#include "decoder/symbols/elf_file.h"
#include "decoder/symbols/process_symbols.h"
#include "tests/support/frame_of.h"

namespace tailtrace::perf {
namespace {

constexpr std::int32_t kPid = 40;
constexpr Address kPlace{0x10000000};

std::string library(std::string_view name) {
  return std::string(TAILTRACE_BINARY_DIR "/tests/programs/") + std::string(name) + "_any.so";
}

const ElfSegment& code_in(const ElfFile& file) {
  return *std::ranges::find_if(file.segments(), &ElfSegment::executable);
}

struct ReplacedLibraries : testing::Test {
  ReplacedLibraries() {
    auto file = ElfFile::open(library("first"));
    EXPECT_TRUE(file);
    code_ = code_in(*file);
    for (const ElfSymbol& symbol : file->symbols())
      if (symbol.name == "first_step") step_ = kPlace + symbol.value;
  }

  void map(std::uint64_t time, const std::string& path) {
    MmapEvent map;
    map.thread = {kPid, kPid};
    map.address = kPlace + code_.address;
    map.size_bytes = (code_.size_bytes + kPage_bytes - 1) & ~(kPage_bytes - 1);
    map.offset_bytes = code_.file_offset_bytes;
    map.path = path;
    programs_.mapped(time, map);
  }
  const RecordedPrograms::Program& program() { return programs_.of(kPid); }
  // Of `step_` in an epoch.
  std::string name(std::uint32_t epoch) {
    ThreadFrame frame = frame_of(program().image);
    frame.former_maps = program().former_maps();
    ProcessSymbols symbols(parse_maps(program().maps()));
    symbols.know_history(frame);
    return symbols.function_in(step_, {epoch}).name;
  }

  ElfSegment code_;
  Address step_;
  RecordedPrograms programs_{{{}, "", true}};
};

TEST_F(ReplacedLibraries, HaveTheirNamesAndTheirTimes) {
  map(0, library("first"));
  map(100, library("second"));
  map(200, library("second"));  // as it was
  map(300, library("first"));
  ASSERT_EQ(program().begins.size(), 2u);
  EXPECT_EQ(program().begins[0].time, 100u);
  EXPECT_EQ(program().begins[1].time, 300u);
  EXPECT_EQ(name(0), "first_step");
  EXPECT_EQ(name(1), "second_step");
  EXPECT_EQ(name(2), "first_step");
  for (std::uint32_t epoch : {0, 1, 2})
    EXPECT_FALSE(program().image->at(step_, 1, {epoch}).empty()) << epoch;
}

TEST_F(ReplacedLibraries, OfTheProgramThatWasExecutedBefore) {
  map(0, library("first"));
  programs_.executed(100, kPid);
  EXPECT_EQ(name(0), "first_step");
  map(200, library("second"));
  EXPECT_EQ(name(0), "first_step");
  EXPECT_EQ(name(1), "second_step");
}

TEST_F(ReplacedLibraries, MayBeReplacedByWhatIsNone) {
  map(0, library("first"));
  map(100, "//anon");
  EXPECT_EQ(name(0), "first_step");
  EXPECT_EQ(name(1), "");
  map(200, library("second"));
  EXPECT_EQ(name(0), "first_step");
  EXPECT_EQ(name(program().image->newest().value), "second_step");
}

}  // namespace
}  // namespace tailtrace::perf
