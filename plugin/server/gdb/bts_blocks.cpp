#include "plugin/server/gdb/bts_blocks.h"

#include <optional>

#include "decoder/code/code_changes.h"
#include "decoder/code/code_reader.h"

namespace tailtrace {
namespace {

class BlockMaker {
 public:
  explicit BlockMaker(const ThreadSnapshot& snapshot)
      : snapshot_(snapshot), reader_(*snapshot.code), changes_(*snapshot.code) {
    reader_.set_epoch(snapshot.first_epoch);
  }

  std::vector<BtsBlock> make() {
    blocks_.reserve(snapshot_.records.size());
    for (std::size_t i = 0; i < snapshot_.records.size(); ++i)
      take(snapshot_.records[i], i + 1 == snapshot_.records.size());
    return std::move(blocks_);
  }

 private:
  void take(const BranchRecord& record, bool newest) {
    if (begin_) {
      if (newest || !record.is_async())
        end_run(record.from);
      else if (record.insns != 0)
        end_run(last_executed(*begin_, record.insns));
    }
    if (is_loss(record.kind)) add_gap(record.to.is_null() ? record.from : record.to);
    if (record.kind == RecordKind::kCodeChange) reader_.set_epoch({reader_.epoch().value + 1});
    begin_ = goes_on(record) ? std::optional(record.to) : std::nullopt;
  }

  static bool is_loss(RecordKind kind) {
    return kind == RecordKind::kGap || kind == RecordKind::kOverflow;
  }

  // A record without `to` says that nobody knows where execution went on, but for branches to
  // address 0, which happen.
  static bool goes_on(const BranchRecord& record) {
    return !record.to.is_null() || record.kind < RecordKind::kEnable;
  }

  void end_run(Address last) {
    if (ran_other_code(last)) return add_gap(*begin_);
    blocks_.push_back({*begin_, last});
  }

  // The debugger would take what is there now for what was executed.
  bool ran_other_code(Address last) {
    if (changes_.empty()) return false;
    auto insn = reader_.at(last);
    return changes_.since(reader_.epoch(), *begin_, last + (insn ? insn->size_bytes : 1));
  }

  void add_gap(Address at) {
    if (at.is_null()) at = {1};
    blocks_.push_back({at, at - 1});
  }

  // The last of `insns` instructions of a straight run. Where the code is not known it is the last
  // one that is.
  Address last_executed(Address begin, std::uint32_t insns) {
    Address at = begin;
    for (std::uint32_t n = 1; n < insns; ++n) {
      auto insn = reader_.at(at);
      if (!insn) break;
      at = insn->next();
    }
    return at;
  }

  const ThreadSnapshot& snapshot_;
  CodeReader reader_;
  CodeChanges changes_;
  std::vector<BtsBlock> blocks_;
  std::optional<Address> begin_;  // of the open run
};

}  // namespace

std::vector<BtsBlock> bts_blocks(const ThreadSnapshot& snapshot) {
  return BlockMaker(snapshot).make();
}

}  // namespace tailtrace
