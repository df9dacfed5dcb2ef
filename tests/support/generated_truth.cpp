#include "tests/support/generated_truth.h"

#include <fmt/format.h>

#include <fstream>

#include "decoder/code/code_reader.h"
#include "decoder/pt/segments/segments.h"

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

  // What is wrong with the record; empty: nothing.
  std::string take(const BranchRecord& record) {
    if (record.kind == RecordKind::kGap) return "a gap";
    for (std::uint32_t i = 0; i < record.insns; ++i) {
      use_changes();
      std::optional<Instruction> insn = code_.at(ip_);
      if (!insn || !truth_.take(*insn))
        return fmt::format("block {}: {:x} was not executed, in the run to {:x}", truth_.position(),
                           ip_.value, record.from.value);
      ip_ = insn->next();
    }
    if (!record.to.is_null()) ip_ = record.to;
    return {};
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

std::string follow(const PtInput& input, Truth& truth) {
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
    path.records(records);
    if (stopped && stopped == path.started_at() && first < records.size())
      records[first].insns += open;
    open = path.open_insns() + (first == records.size() ? open : 0);
    stopped = path.stopped_at();
    for (const BranchRecord& record : records)
      if (std::string problem = follower.take(record); !problem.empty()) return problem;
  }
  return {};
}

}  // namespace

std::optional<GeneratedTruth> check_generated(const std::string& prefix, const PtInput& input) {
  Truth truth(prefix + ".truth");
  if (!truth.good()) return std::nullopt;
  GeneratedTruth result;
  result.problem = follow(input, truth);
  if (result.problem.empty() && !truth.done()) result.problem = "the trace ends too early";
  result.blocks = truth.position();
  return result;
}

}  // namespace tailtrace::pt
