#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "decoder/record/record_stream.h"
#include "decoder/record/stream_format.h"
#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

using Packing = RecordStreamWriter::Packing;
constexpr std::uint64_t kLimit_bytes = 1 << 26;

std::vector<BranchRecord> numbered(std::size_t count) {
  std::vector<BranchRecord> records;
  for (std::uint64_t n = 0; n < count; ++n)
    records.push_back({{n}, {n + 1}, n * 7, 1, RecordKind::kJump, 0, 0});
  return records;
}

class StreamTest : public testing::TestWithParam<Packing> {
 protected:
  StreamHeader header() const { return {{11, 12}, "qemu", RingClock::kTsc, {1000}, {3}, true}; }

  // A stream of 20000 records, three chunks of them.
  Bytes whole() {
    auto writer = RecordStreamWriter::create(path_, header(), GetParam());
    EXPECT_TRUE(writer);
    EXPECT_TRUE(writer->add_records(numbered(20000)));
    EXPECT_TRUE(writer->add_code({{0x1000}, {3}, *from_hex("90c3"), 0}));
    EXPECT_TRUE(writer->add_code({{0x1001}, {4}, {}, 0x10}));
    EXPECT_TRUE(writer->add_maps("1000-2000 r-xp 0 0:0 0 /bin/x\n"));
    EXPECT_TRUE(writer->finish());
    return *read_file(path_, kLimit_bytes);
  }
  Result<RecordStream> parse(const Bytes& bytes, std::uint64_t limit_bytes = kLimit_bytes) {
    return parse_record_stream(bytes, "stream", limit_bytes);
  }
  // Where the n-th chunk begins.
  static std::size_t chunk_at(const Bytes& bytes, int n) {
    std::size_t at = sizeof(StreamFileHeader);
    while (n-- > 0) {
      auto stored = load<StreamChunkHeader>(bytes, at).stored_bytes;
      at += sizeof(StreamChunkHeader) + stored + stream_padding_bytes(stored);
    }
    return at;
  }

  TempFolder folder_;
  std::string path_ = folder_.file("stream");
};

TEST_P(StreamTest, GivesBackWhatWasWritten) {
  whole();
  auto stream = read_record_stream(path_);
  ASSERT_TRUE(stream) << stream.error().to_string();
  EXPECT_TRUE(stream->problems.empty());
  EXPECT_EQ(stream->header.thread, (ThreadId{11, 12}));
  EXPECT_EQ(stream->header.engine, "qemu");
  EXPECT_EQ(stream->header.clock, RingClock::kTsc);
  EXPECT_EQ(stream->header.first.value, 1000u);
  EXPECT_EQ(stream->header.first_epoch.value, 3u);
  EXPECT_TRUE(stream->header.complete);
  EXPECT_EQ(stream->records, numbered(20000));
  ASSERT_EQ(stream->code.size(), 2u);
  EXPECT_EQ(to_hex(stream->code[0].bytes), "90c3");
  EXPECT_EQ(stream->code[1].gone_bytes, 0x10u);
  EXPECT_EQ(stream->code[1].from.value, 4u);
  EXPECT_EQ(stream->maps, "1000-2000 r-xp 0 0:0 0 /bin/x\n");
  EXPECT_FALSE(std::filesystem::exists(path_ + ".part"));
  EXPECT_EQ(std::filesystem::status(path_).permissions() & std::filesystem::perms::all,
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_P(StreamTest, OfNoRecordsIsWholeToo) {
  auto writer = RecordStreamWriter::create(path_, header(), GetParam());
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->finish());
  auto stream = read_record_stream(path_);
  ASSERT_TRUE(stream);
  EXPECT_TRUE(stream->records.empty());
  EXPECT_TRUE(stream->problems.empty());
}

TEST_P(StreamTest, CutShortAnywhereGivesTheChunksThatAreWhole) {
  Bytes all = whole();
  for (std::size_t size = 0; size < all.size(); size += size < 300 ? 1 : 997) {
    auto stream = parse(Bytes(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(size)));
    if (size < sizeof(StreamFileHeader)) {
      ASSERT_FALSE(stream);
      EXPECT_EQ(stream.error().code, ErrorCode::kBadInput);
      continue;
    }
    ASSERT_TRUE(stream) << size;
    EXPECT_EQ(stream->problems.size(), 1u) << size;
    std::size_t count = 0;
    for (int chunks = 1; chunks <= 3 && size >= chunk_at(all, chunks); ++chunks)
      count = std::min<std::size_t>(20000, 8192 * static_cast<std::size_t>(chunks));
    EXPECT_GE(stream->records.size(), count) << size;
    EXPECT_LE(stream->records.size(), count == 16384 ? 20000 : count) << size;
  }
}

TEST_P(StreamTest, WithADamagedChunkHasGapsInItsPlaceAndTheRest) {
  Bytes all = whole();
  all[chunk_at(all, 1) + 100] ^= 1;  // the second chunk of records
  auto stream = parse(all);
  ASSERT_TRUE(stream);
  ASSERT_EQ(stream->problems.size(), 1u);
  EXPECT_NE(stream->problems[0].why.find("damaged"), std::string::npos);
  ASSERT_EQ(stream->records.size(), 20000u);
  std::vector<BranchRecord> truth = numbered(20000);
  for (std::size_t i = 0; i < 20000; ++i) {
    bool lost = i >= 8192 && i < 16384;
    EXPECT_EQ(stream->records[i].kind, lost ? RecordKind::kGap : RecordKind::kJump) << i;
    if (!lost) {
      ASSERT_EQ(stream->records[i], truth[i]);
    }
  }
}

TEST_P(StreamTest, WhoseNewestChunkIsDamagedSaysHowManyRecordsThereWere) {
  Bytes all = whole();
  all[chunk_at(all, 2) + 100] ^= 1;
  auto stream = parse(all);
  ASSERT_TRUE(stream);
  EXPECT_EQ(stream->records.size(), 16384u);
  ASSERT_EQ(stream->problems.size(), 2u);
  EXPECT_NE(stream->problems[1].why.find("20000"), std::string::npos);
}

// A chunk that is whole and claims to be of much later records, with no damage that would account
// for the rest.
TEST_P(StreamTest, DoesNotFillInRecordsThatNoDamageCanHaveTaken) {
  if (GetParam() != Packing::kNone) return;  // what is packed cannot be changed so
  Bytes all = whole();
  std::uint8_t* chunk = all.data() + chunk_at(all, 1);
  StreamChunkHeader header;
  std::memcpy(&header, chunk, sizeof header);
  const std::uint64_t claimed = 1000 + (1 << 20);
  std::memcpy(chunk + sizeof header, &claimed, sizeof claimed);
  header.check = stream_check({chunk + sizeof header, header.stored_bytes});
  std::memcpy(chunk, &header, sizeof header);
  auto stream = parse(all);
  ASSERT_TRUE(stream);
  EXPECT_EQ(stream->records.size(), 8192u);
  ASSERT_FALSE(stream->problems.empty());
  EXPECT_NE(stream->problems[0].why.find("cannot follow"), std::string::npos);
}

TEST_P(StreamTest, NeverUnpacksMoreThanItsLimit) {
  auto stream = parse(whole(), 300000);
  ASSERT_TRUE(stream);
  EXPECT_EQ(stream->records.size(), 8192u);
  EXPECT_FALSE(stream->problems.empty());
}

TEST_P(StreamTest, OfAnotherVersionOrKindIsRefused) {
  Bytes all = whole();
  struct Case {
    std::size_t offset;
    std::uint8_t value;
    const char* why;
  };
  for (const Case& c : {Case{0, 'X', "does not begin"}, Case{8, 2, "version 2"},
                        Case{12, 63, "sizes"}, Case{16, 31, "sizes"}}) {
    Bytes bytes = all;
    bytes[c.offset] = c.value;
    auto stream = parse(bytes);
    ASSERT_FALSE(stream) << c.why;
    EXPECT_EQ(stream.error().code, ErrorCode::kBadInput);
    EXPECT_NE(stream.error().why.find(c.why), std::string::npos) << stream.error().why;
  }
  EXPECT_FALSE(parse({}));
}

TEST_P(StreamTest, LeavesNothingBehindWhenItIsNotFinished) {
  std::ofstream(path_) << "what was there before";
  {
    auto writer = RecordStreamWriter::create(path_, header(), GetParam());
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->add_records(numbered(10)));
  }
  EXPECT_FALSE(std::filesystem::exists(path_ + ".part"));
  EXPECT_EQ(as_text(*read_file(path_, 100)), "what was there before");
}

// Files may not grow beyond a few KiB for a while, which looks like a full disk.
class SmallFiles {
 public:
  SmallFiles() : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit small = before_;
    small.rlim_cur = 8192;
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallFiles() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }

 private:
  void (*signal_)(int);
  rlimit before_ = {};
};

TEST_P(StreamTest, SaysWhenTheDiskIsFullAndLeavesNothingBehind) {
  {
    auto writer = RecordStreamWriter::create(path_, header(), GetParam());
    ASSERT_TRUE(writer);
    SmallFiles small;
    Result<void> written = writer->add_records(numbered(20000));
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ErrorCode::kSystem);
    EXPECT_FALSE(written.error().why.empty());
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".part"));
}

TEST_P(StreamTest, RefusesWhatItCannotWrite) {
  auto no_folder = RecordStreamWriter::create(folder_.file("absent/stream"), header(), GetParam());
  ASSERT_FALSE(no_folder);
  EXPECT_EQ(no_folder.error().code, ErrorCode::kSystem);
  StreamHeader long_name = header();
  long_name.engine = "a-name-of-seventeen";
  auto refused = RecordStreamWriter::create(path_, long_name, GetParam());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
}

INSTANTIATE_TEST_SUITE_P(Packing, StreamTest, testing::Values(Packing::kNone, Packing::kZstd),
                         [](const auto& tested) {
                           return tested.param == Packing::kNone ? "Plain" : "Zstd";
                         });

}  // namespace
}  // namespace tailtrace
