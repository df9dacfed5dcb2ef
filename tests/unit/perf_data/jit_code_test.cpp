// Code that a recorded program generated, out of the jitdump that perf.data names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decoder/perf_data/recording.h"
#include "decoder/perf_data/writer.h"
#include "decoder/pt/synthesis/synthesis.h"
#include "decoder/symbols/process_symbols.h"
#include "tests/support/jit_files.h"
#include "tests/support/perf_files.h"
#include "tests/support/temp_folder.h"

namespace tailtrace::perf {
namespace {

using testing::HasSubstr;

constexpr ThreadId kJitThread{40, 41};
constexpr Address kDumpAt{0x10000};
constexpr std::uint64_t kTsc = 1;  // the flag of such times

MmapEvent mapping_of(const std::string& path) {
  MmapEvent map;
  map.thread = kJitThread;
  map.address = kDumpAt;
  map.size_bytes = 0x1000;
  map.path = path;
  return map;
}

std::uint8_t byte_at(const CodeImage& image, std::uint64_t address, Epoch when) {
  ByteSpan bytes = image.at({address}, 1, when);
  return bytes.empty() ? 0 : bytes[0];
}

TEST(JitCode, OfARecordingIsThatOfTheDump) {
  TempFolder folder;
  ToyProgram toy(3, 4, 4);
  ToyRun run = toy.run(7, 400);
  run.snapshot->thread = kJitThread;
  const ByteSpan code = toy.image()->at(ToyProgram::kBase, ~std::size_t{0});
  JitFile dump;
  // In two functions, as if they had been moved here.
  const std::size_t half = code.size() / 2;
  dump.load(5, 0x777000, "first", Bytes(code.begin(), code.begin() + half), 1);
  dump.load(6, ToyProgram::kBase.value + half, "second", Bytes(code.begin() + half, code.end()), 2);
  dump.move(7, 0x777000, ToyProgram::kBase.value, half, 1);
  const std::string path = folder.file("jit-40.dump");
  dump.write(path);
  auto trace = pt::synthesize(run.snapshot->records, *toy.image(), {}, {});
  ASSERT_TRUE(trace);
  PerfDataWriter writer(false);
  const WrittenMapping mapping{kDumpAt, 0x1000, 0, {}, path};
  writer.add_mappings(kJitThread.pid, {&mapping, 1});
  writer.add_thread(kJitThread, "jit", {{1, *trace}});
  const Bytes file = writer.finish();
  auto data = parse_perf_data(file, "perf.data");
  ASSERT_TRUE(data) << data.error().to_string();
  auto recording = PerfRecording::make(std::move(*data), "");
  ASSERT_TRUE(recording) << recording.error().to_string();
  auto opened = (*recording)->open_thread(kJitThread);
  ASSERT_TRUE(opened) << opened.error().to_string();
  EXPECT_TRUE(opened->problems.empty());
  EXPECT_EQ(instructions_of(*opened), run.executed);
  ProcessSymbols symbols(parse_maps(opened->maps), opened->perf_map);
  EXPECT_EQ(symbols.function_at(ToyProgram::kBase).name, "first");
  EXPECT_EQ(symbols.function_at(ToyProgram::kBase + half).name, "second");
}

TEST(JitCode, IsThereFromWhenItWasMade) {
  TempFolder folder;
  JitFile dump(kTsc);
  dump.load(100, 0x5000, "one", {1}, 1);
  dump.load(200, 0x5000, "two", {2}, 2);
  dump.load(150, 0x6000, "beside", {3}, 3);
  dump.load(300, 0x5000, "three", {4}, 4);
  const std::string path = folder.file("jit-40.dump");
  dump.write(path);
  RecordedPrograms programs({{}, "", true});
  programs.mapped(50, mapping_of(path));
  programs.forked(44, kJitThread.pid);
  programs.mapped(250, mapping_of(path));  // which tells nothing new
  programs.finish();
  const auto& program = programs.of(kJitThread.pid);
  ASSERT_EQ(program.begins.size(), 2u);
  EXPECT_EQ(program.begins[0].time, 200u);
  EXPECT_EQ(program.begins[1].time, 300u);
  EXPECT_EQ(byte_at(*program.image, 0x5000, {0}), 1);
  EXPECT_EQ(byte_at(*program.image, 0x5000, program.begins[0].epoch), 2);
  EXPECT_EQ(byte_at(*program.image, 0x5000, program.begins[1].epoch), 4);
  EXPECT_EQ(byte_at(*program.image, 0x6000, program.begins[1].epoch), 3);
  EXPECT_EQ(byte_at(*programs.of(44).image, 0x5000, programs.of(44).image->newest()), 4);
  EXPECT_FALSE(programs.problem());
}

TEST(JitCode, WhoseTimesAreOfAnotherClockIsAsItWasLast) {
  TempFolder folder;
  JitFile dump;
  dump.load(100, 0x5000, "one", {1}, 1);
  dump.load(200, 0x5000, "two", {2}, 2);
  const std::string path = folder.file("jit-40.dump");
  dump.write(path);
  RecordedPrograms programs({{}, "", true});
  programs.mapped(50, mapping_of(path));
  programs.finish();
  const auto& program = programs.of(kJitThread.pid);
  EXPECT_EQ(byte_at(*program.image, 0x5000, program.image->newest()), 2);
  for (const pt::EpochBegin& begin : program.begins) EXPECT_EQ(begin.time, 50u);
}

TEST(JitCode, OfADamagedDumpIsWhatCanBeReadOfIt) {
  TempFolder folder;
  JitFile dump(kTsc);
  dump.load(100, 0x5000, "one", {1}, 1);
  dump.record(0, 110, Bytes(3));
  dump.load(120, ~0ull, "wraps", {1, 2}, 2);
  const std::string path = folder.file("jit-40.dump");
  dump.write(path);
  RecordedPrograms programs({{}, "", true});
  programs.mapped(50, mapping_of(path));
  programs.finish();
  const auto& program = programs.of(kJitThread.pid);
  EXPECT_EQ(byte_at(*program.image, 0x5000, program.image->newest()), 1);
  ASSERT_TRUE(programs.problem());
  EXPECT_THAT(programs.problem()->why, HasSubstr("cannot read 2 record(s)"));
}

}  // namespace
}  // namespace tailtrace::perf
