// History: a thread's instructions and gaps, numbered, reached at random in both directions.
//
// Items count from 1, the oldest held, to size(), the newest; a gap takes one number. The same
// items count back from the newest: -1 is the newest. (GDB's `record instruction-history` counts
// the same way.) The instruction where the thread stands was not executed and is no item.
//
// Kept are the snapshot's records and a few bytes for every group of them, nothing per instruction:
// instructions are read out of the code again where they are asked for.
//
// Threading: a History is immutable; any number of threads may share it, each with a cursor of its
// own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "decoder/history/run.h"
#include "decoder/history/snapshot.h"

namespace tailtrace {

class History {
 public:
  // Follows every record once, oldest first, which takes time in proportion to their number.
  // REQUIRES: the snapshot has code, empty though it may be.
  explicit History(std::shared_ptr<const ThreadSnapshot> snapshot);

  // Instructions and gaps.
  std::uint64_t size() const { return size_; }
  std::uint64_t gaps() const { return gaps_; }
  std::uint64_t instructions() const { return size_ - gaps_; }

  // The oldest item is the first instruction that was ever recorded of the thread.
  bool complete() const { return snapshot_->complete; }

  // Calls `see` for every gap, oldest first; follows all records once more.
  void each_gap(const std::function<void(GapReason)>& see) const;

  // Where the thread stands: the instruction to be executed next. Nothing when that is not known.
  std::optional<Address> stop() const;

  // The item's number: `index` from 1 to size(), or from -1 down to -size().
  std::optional<std::uint64_t> resolve(std::int64_t index) const;

  const ThreadSnapshot& snapshot() const { return *snapshot_; }

  // What the index takes, beside the records.
  std::size_t index_size_bytes() const { return groups_.size() * sizeof(Group); }

 private:
  friend class HistoryCursor;
  friend class HistoryRuns;

  // Where a group of records is entered.
  static constexpr std::size_t kGroupRecords = 64;
  // Whoever follows all records meets the same runs again.
  static constexpr std::size_t kFollowedRuns = 1 << 13;
  struct Group {
    std::uint64_t before = 0;  // items of all earlier records
    FlowState state;
  };

  std::size_t group_of(std::uint64_t number) const;
  std::uint64_t run_limit_insns(std::size_t record) const;

  std::shared_ptr<const ThreadSnapshot> snapshot_;
  std::vector<Group> groups_;
  FlowState end_;
  std::uint64_t size_ = 0;
  std::uint64_t gaps_ = 0;
  std::size_t doubtful_ = ~std::size_t{0};  // from this record on only short runs are believed
};

// One instruction or gap of a history.
struct HistoryItem {
  std::uint64_t number = 0;
  bool is_gap = false;
  Gap gap;                  // of gaps
  Instruction instruction;  // of instructions
  Epoch epoch;              // of the code it was executed in
  Position record;          // the record that ends its run, or tells of the gap
  std::uint64_t time = 0;   // last known before it, in the thread's clock units; 0 unknown

  bool begins_run = false;  // what led here is a record, not the instruction before

  // The record when this instruction is its `from`: it transferred control. A conditional branch
  // without one was not taken.
  const BranchRecord* branch = nullptr;
};

// Walks a history item by item, in both directions.
//
// Threading: one thread at a time. The history must outlive it.
class HistoryCursor {
 public:
  explicit HistoryCursor(const History& history);

  // Whether it stands on an item. A new cursor stands on none.
  bool valid() const { return item_.number != 0; }

  void seek_to_newest() { seek(history_->size()); }
  void seek_to_oldest() { seek(1); }
  // Stands on that item; on none when there is no such number.
  void seek(std::uint64_t number);

  // REQUIRES: valid(). Past either end it stands on none.
  void next() { seek(item_.number + 1); }
  void prev() { seek(item_.number - 1); }

  // REQUIRES: valid(). Changes with the next move.
  const HistoryItem& item() const { return item_; }

  // The bytes of the instruction it stands on; empty on a gap.
  Bytes bytes();

 private:
  // One record of the group at hand.
  struct Part {
    std::uint64_t before = 0;  // items of all earlier records
    Step step;
  };
  // Instructions of one run that were read already; long runs are cut into such windows.
  static constexpr std::size_t kWindow_insns = 4096;

  void load_group(std::size_t group);
  void show_gap(const Part& part, std::size_t record);
  void show_instruction(const Part& part, std::size_t record, std::uint64_t offset);
  void load_window(const Part& part, std::size_t record, std::uint64_t offset);

  const History* history_;
  RunReader reader_;
  HistoryItem item_;

  std::size_t group_ = ~std::size_t{0};
  std::vector<Part> parts_;
  std::size_t part_ = 0;
  FlowState behind_;  // the state after the group

  std::size_t window_record_ = ~std::size_t{0};
  std::uint64_t window_first_ = 0;
  std::vector<Address> window_;
};

}  // namespace tailtrace
