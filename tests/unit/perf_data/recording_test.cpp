// perf.data files as histories: of toy programs, whose machine knows what it executed, and files
// that are damaged.
#include "decoder/perf_data/recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <fstream>

#include "decoder/perf_data/writer.h"
#include "decoder/pt/synthesis/synthesis.h"
#include "tests/support/perf_files.h"
#include "tests/support/temp_folder.h"

namespace tailtrace::perf {
namespace {

using testing::HasSubstr;

constexpr ThreadId kThread{40, 41};

Result<std::shared_ptr<const PerfRecording>> recording_of(ByteSpan bytes) {
  auto data = parse_perf_data(bytes, "perf.data");
  if (!data) return fail(std::move(data.error()));
  return PerfRecording::make(std::move(*data), "");
}

// What of a file can be had; an error says what and why.
bool read_all(ByteSpan bytes) {
  auto recording = recording_of(bytes);
  if (!recording) {
    EXPECT_FALSE(recording.error().what.empty() || recording.error().why.empty());
    return false;
  }
  for (const PerfRecording::Thread& thread : (*recording)->threads())
    if (auto opened = (*recording)->open_thread(thread.thread)) instructions_of(*opened);
  return true;
}

class PerfRecordingTest : public testing::Test {
 protected:
  PerfRecordingTest() {
    run_ = toy_.run(7, 400);
    run_.snapshot->thread = kThread;
    filed_ = FiledProgram::write(toy_, folder_.file("toy"));
    file_ = perf_file_of(run_, filed_);
  }
  std::vector<Address> read(ByteSpan bytes) {
    auto recording = recording_of(bytes);
    EXPECT_TRUE(recording) << (recording ? "" : recording.error().to_string());
    if (!recording) return {};
    auto opened = (*recording)->open_thread(kThread);
    EXPECT_TRUE(opened);
    EXPECT_TRUE(opened->problems.empty());
    return instructions_of(*opened);
  }

  TempFolder folder_;
  ToyProgram toy_{3, 4, 4};
  ToyRun run_;
  FiledProgram filed_;
  Bytes file_;
};

TEST_F(PerfRecordingTest, GivesBackWhatWasExecuted) { EXPECT_EQ(read(file_), run_.executed); }

TEST_F(PerfRecordingTest, ReadsThePipeFormAndPackedRecords) {
  EXPECT_EQ(read(as_pipe(file_)), run_.executed);
  EXPECT_EQ(read(as_pipe(file_, true)), run_.executed);
}

// Perf would show what the file has, though it leads the same ways.
TEST_F(PerfRecordingTest, IsNotWrittenOfAFileWithOtherInstructions) {
  constexpr std::uint8_t kNop = 0x90, kClc = 0xf8;
  auto byte_at = [&](Address address) { return filed_.image->at(address, 1).front(); };
  const auto nop = std::ranges::find(run_.executed, kNop, byte_at);
  ASSERT_NE(nop, run_.executed.end());
  const auto times = std::ranges::count(run_.executed, *nop);
  std::fstream file(filed_.path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(*nop - ToyProgram::kBase));
  file.put(static_cast<char>(kClc)).flush();
  const std::vector<Address> shown = read(perf_file_of(run_, filed_));
  EXPECT_EQ(std::ranges::count(shown, *nop), 0) << times;
  EXPECT_GT(shown.size(), run_.executed.size() / 4);
}

TEST_F(PerfRecordingTest, NamesAFileThatIsGoneOrAnotherOne) {
  std::string other = file_.empty() ? "" : folder_.file("gone");
  ASSERT_EQ(::rename(filed_.path.c_str(), other.c_str()), 0);
  auto recording = recording_of(file_);
  ASSERT_TRUE(recording);
  auto opened = (*recording)->open_thread(kThread);
  ASSERT_TRUE(opened);
  ASSERT_EQ(opened->problems.size(), 1u);
  EXPECT_THAT(opened->problems[0].to_string(), HasSubstr(filed_.path));
  EXPECT_THAT(opened->problems[0].why, HasSubstr("no such file"));
  EXPECT_TRUE(instructions_of(*opened).empty());
  EXPECT_GE(gaps_of(*opened), 1u);

  PerfDataWriter writer(true);
  writer.add_mappings(40, std::vector<WrittenMapping>{
                              {ToyProgram::kBase, 4096, 0, Bytes(20, 0xab), "/proc/self/exe"}});
  writer.add_thread(kThread, "toy", {});
  writer.add_thread({40, 42}, "toy", {{1, *pt::synthesize({}, CodeImage(), {}, {})}});
  recording = recording_of(writer.finish());
  ASSERT_TRUE(recording);
  opened = (*recording)->open_thread({40, 42});
  ASSERT_TRUE(opened);
  EXPECT_THAT(opened->problems.at(0).why, HasSubstr("abababab"));
}

TEST_F(PerfRecordingTest, AnyDamageIsAnErrorOrAHistory) {
  for (const Bytes& whole : {file_, as_pipe(file_, true)}) {
    for (std::size_t size = 0; size < whole.size(); size += size < 300 ? 3 : 101)
      read_all(ByteSpan(whole).first(size));
    for (std::size_t at = 0; at < std::min<std::size_t>(whole.size(), 400); ++at) {
      Bytes damaged = whole;
      damaged[at] ^= at % 2 == 0 ? 0x80 : 0x01;
      read_all(damaged);
    }
  }
}

TEST_F(PerfRecordingTest, LimitsWhatAFileCanMakeGrow) {
  PerfDataLimits limits;
  limits.records = 1;
  EXPECT_THAT(parse_perf_data(file_, "f", {}, limits).error().why,
              HasSubstr("more than 1 records"));
  limits = {};
  limits.unpacked_bytes = 16;
  Bytes packed = as_pipe(file_, true);
  EXPECT_THAT(parse_perf_data(packed, "f", {}, limits).error().why, HasSubstr("packed"));
  limits = {};
  limits.aux_pieces = 0;
  EXPECT_THAT(parse_perf_data(file_, "f", {}, limits).error().why, HasSubstr("too many pieces"));
}

// Behind each of them the begin of the record is held once more.
TEST_F(PerfRecordingTest, PackedRecordsThatHoldNothingTakeNoMemoryInsideARecord) {
  Bytes pipe = as_pipe(file_);
  pipe.resize(kHeaderPipeBytes + load<RecordHeader>(pipe, kHeaderPipeBytes).size_bytes);
  auto add = [&](std::string_view packed) {
    const RecordHeader header{kRecordCompressed, 0, static_cast<std::uint16_t>(8 + packed.size())};
    const auto* begin = reinterpret_cast<const std::uint8_t*>(&header);
    pipe.insert(pipe.end(), begin, begin + sizeof header);
    pipe.insert(pipe.end(), packed.begin(), packed.end());
  };
  const Bytes record = perf_record(kRecordExit, 0, std::vector<std::uint64_t>(100));
  std::string frame(ZSTD_compressBound(record.size()), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), record.data(), record.size() - 1, 1));
  add(frame);
  PerfDataLimits limits;
  limits.unpacked_bytes = 10 * record.size();
  EXPECT_TRUE(parse_perf_data(pipe, "f", {}, limits));
  for (int i = 0; i < 10; ++i) add("");
  const auto parsed = parse_perf_data(pipe, "f", {}, limits);
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().why, HasSubstr("it holds more than"));
}

TEST_F(PerfRecordingTest, SaysWhatIsNoPerfData) {
  EXPECT_THAT(parse_perf_data(as_bytes("PERFFILE2\0\0\0\0\0\0\0\0"), "f").error().why,
              HasSubstr("does not begin"));
  // Of another byte order.
  Bytes swapped = file_;
  std::reverse(swapped.begin(), swapped.begin() + 8);
  EXPECT_THAT(parse_perf_data(swapped, "f").error().why, HasSubstr("little-endian"));
  Bytes many = file_;
  many[kHeaderFeatures + kFeatureDirectory / 8] |= 1 << kFeatureDirectory % 8;
  EXPECT_THAT(parse_perf_data(many, "f").error().fix, HasSubstr("--threads"));
}

TEST_F(PerfRecordingTest, ReadsWhatAKilledPerfLeftBehind) {
  Bytes killed = file_;
  killed.resize(load<std::uint64_t>(file_, kHeaderData) +
                load<std::uint64_t>(file_, kHeaderData + 8));
  std::fill_n(killed.begin() + kHeaderData + 8, 8, std::uint8_t{0});
  auto recording = recording_of(killed);
  ASSERT_TRUE(recording);
  auto opened = (*recording)->open_thread(kThread);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->problems.size(), 1u);
  EXPECT_EQ(instructions_of(*opened), run_.executed);
}

// --- pieces of areas ----------------------------------------------------------------------------

AuxPiece piece(std::uint64_t offset, ByteSpan bytes) { return {0, 5, -1, offset, bytes}; }

TEST(AuxQueues, PiecesThatWereFilledUpAreCutWhereTheNextBegins) {
  const Bytes a = {1, 2, 3, 0, 0, 0, 0, 0}, b = {4, 5, 6, 7, 8, 9, 10, 11};
  AuxPiece pieces[] = {piece(3, b), piece(0, a)};
  auto queues = join_pieces(pieces, {}, false);
  ASSERT_EQ(queues.size(), 1u);
  ASSERT_EQ(queues[0].runs.size(), 1u);
  EXPECT_THAT(queues[0].runs[0].bytes, testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
}

TEST(AuxQueues, SnapshotsThatOverlapShowEverythingOnce) {
  const Bytes a = {1, 2, 3, 4}, b = {3, 4, 5, 6}, inside = {2, 3}, later = {9};
  AuxPiece pieces[] = {piece(10, a), piece(12, b), piece(11, inside), piece(20, later)};
  auto queues = join_pieces(pieces, {}, true);
  ASSERT_EQ(queues[0].runs.size(), 2u);
  EXPECT_THAT(queues[0].runs[0].bytes, testing::ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(queues[0].runs[0].offset_bytes, 10u);
  EXPECT_EQ(queues[0].runs[1].lost_before, kAuxOverwrite);
}

TEST(AuxQueues, AHoleThatTheKernelTellsOfCutsARun) {
  const Bytes a = {1, 2, 3, 4};
  AuxPiece pieces[] = {piece(10, a)};
  const ToldHole holes[] = {{5, -1, 12, kAuxTruncated}, {6, -1, 13, kAuxPartial}};
  auto queues = join_pieces(pieces, holes, false);
  ASSERT_EQ(queues[0].runs.size(), 2u) << "the other hole is of another thread";
  EXPECT_THAT(queues[0].runs[1].bytes, testing::ElementsAre(3, 4));
  EXPECT_EQ(queues[0].runs[1].lost_before, kAuxTruncated);
}

}  // namespace
}  // namespace tailtrace::perf
