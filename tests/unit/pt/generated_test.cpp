// Generated traces, whole: what the records of the fast path and the code give must be what was
// executed, instruction by instruction. A generator writes down the executed blocks beside each
// trace (PREFIX.truth). TAILTRACE_GENERATED_PT names prefixes, separated by spaces.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "decoder/code/code_reader.h"
#include "decoder/pt/segments.h"
#include "tests/support/pt_inputs.h"

namespace tailtrace::pt {
namespace {

// What the generator wrote: blocks, and which of them were executed one after the other.
class Truth {
 public:
  struct Header {
    char magic[8];
    std::uint64_t table_count, block_count, event_count;
  };
  struct Block {
    std::uint64_t pc;
    std::uint16_t size_bytes, insns, last_offset;
    std::uint8_t kind, reserved;
  };
  static_assert(sizeof(Block) == 16);

  explicit Truth(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    Header header{};
    file.read(reinterpret_cast<char*>(&header), sizeof header);
    table_.resize(header.table_count);
    file.read(reinterpret_cast<char*>(table_.data()),
              static_cast<std::streamsize>(table_.size() * sizeof(Block)));
    blocks_.resize(header.block_count);
    file.read(reinterpret_cast<char*>(blocks_.data()),
              static_cast<std::streamsize>(blocks_.size() * sizeof blocks_[0]));
    good_ = static_cast<bool>(file);
  }

  bool good() const { return good_; }
  bool done() const { return at_ == blocks_.size(); }
  // Blocks that were executed in full.
  std::uint64_t position() const { return at_; }
  std::uint64_t block_count() const { return blocks_.size(); }

  // Whether `insn` is what was executed next.
  bool take(const Instruction& insn) {
    if (done()) return false;
    const Block& block = table_[blocks_[at_]];
    if (in_block_ == 0) expected_ = block.pc;
    if (insn.address.value != expected_) return false;
    expected_ = insn.next().value;
    if (++in_block_ < block.insns) return true;
    in_block_ = 0;
    ++at_;
    return insn.address.value == block.pc + block.last_offset;
  }

 private:
  std::vector<Block> table_;
  std::vector<std::uint32_t> blocks_;
  std::uint64_t at_ = 0, expected_ = 0;
  unsigned in_block_ = 0;
  bool good_ = false;
};

// Follows records through the code, and holds every instruction against the truth.
class Follower {
 public:
  Follower(const PtInput& input, Truth& truth) : input_(input), truth_(truth), code_(*input.code) {}

  testing::AssertionResult take(const BranchRecord& record) {
    if (record.kind == RecordKind::kGap) return testing::AssertionFailure() << "a gap";
    for (std::uint32_t i = 0; i < record.insns; ++i) {
      use_changes();
      std::optional<Instruction> insn = code_.at(ip_);
      if (!insn || !truth_.take(*insn))
        return testing::AssertionFailure()
               << "block " << truth_.position() << ": " << std::hex << ip_.value
               << " was not executed, in the run to " << record.from.value;
      ip_ = insn->next();
    }
    if (!record.to.is_null()) ip_ = record.to;
    return testing::AssertionSuccess();
  }

 private:
  void use_changes() {
    while (next_change_ < input_.change_blocks.size() &&
           input_.change_blocks[next_change_] <= truth_.position())
      code_.set_epoch(input_.config.code_changes[next_change_++].epoch);
  }

  const PtInput& input_;
  Truth& truth_;
  CodeReader code_;
  std::size_t next_change_ = 0;
  Address ip_;
};

std::vector<std::string> prefixes() {
  std::vector<std::string> all;
  if (const char* names = std::getenv("TAILTRACE_GENERATED_PT")) {
    std::istringstream list(names);
    for (std::string prefix; list >> prefix;) all.push_back(prefix);
  }
  return all;
}

testing::AssertionResult follow(const PtInput& input, Truth& truth) {
  Follower follower(input, truth);
  SegmentDecoder decoder(input.trace, *input.code, input.config);
  // One segment at a time: all records of a large trace do not fit.
  std::vector<Segment> segments = find_segments(input.trace, 1u << 16);
  std::uint32_t open = 0;
  std::optional<Address> stopped;
  std::vector<BranchRecord> records;
  for (const Segment& segment : segments) {
    SegmentPath path = decoder.decode(segment);
    records.clear();
    if (path.started_at() && stopped != path.started_at())
      records.push_back({{}, *path.started_at(), 0, 0, RecordKind::kEnable, 0, 0});
    std::size_t first = records.size();
    path.records(input.trace, input.config, records);
    if (stopped && stopped == path.started_at() && first < records.size())
      records[first].insns += open;
    open = path.open_insns() + (first == records.size() ? open : 0);
    stopped = path.stopped_at();
    for (const BranchRecord& record : records)
      if (testing::AssertionResult result = follower.take(record); !result) return result;
  }
  return testing::AssertionSuccess();
}

TEST(GeneratedTraces, RecordsAreWhatWasExecuted) {
  if (prefixes().empty()) GTEST_SKIP() << "TAILTRACE_GENERATED_PT names no generated traces";
  for (const std::string& prefix : prefixes()) {
    SCOPED_TRACE(prefix);
    Result<PtInput> input = load_generated(prefix);
    ASSERT_TRUE(input) << input.error().to_string();
    Truth truth(prefix + ".truth");
    ASSERT_TRUE(truth.good());
    EXPECT_TRUE(follow(*input, truth));
    EXPECT_EQ(truth.position(), truth.block_count());
  }
}

}  // namespace
}  // namespace tailtrace::pt
