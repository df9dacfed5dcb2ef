// History: a thread's instructions and gaps, numbered, reached at random in both directions.
//
// Items have numbers that grow by one from the oldest to the newest; a gap takes one. The same
// items count back from the newest: -1 is the newest. (GDB's `record instruction-history` counts
// the same way.) The instruction where the thread stands was not executed and is no item.
//
// The records lie in segments (segment_store.h), of which the newest is read first, and others when
// they are asked for. So a history whose numbers begin at the newest costs nothing to open, however
// long it is; one whose numbers begin with 1 has to be counted first. Numbers never change.
//
// Kept are a few bytes for every group of records, nothing per instruction: instructions are read
// out of the code again where they are asked for.
//
// Threading: any number of threads may share a History, each with a cursor of its own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "decoder/history/run.h"
#include "decoder/history/segment_store.h"
#include "decoder/history/snapshot.h"

namespace tailtrace {

class History;

struct HistorySettings {
  enum class Numbers : std::uint8_t {
    kFromOldest,  // 1 is the oldest: all is looked at when the history is made
    kFromNewest,  // kNewest is the newest: nothing is
  };
  Numbers numbers = Numbers::kFromOldest;
  // Of decoded records that are kept.
  std::size_t cache_bytes = std::size_t{256} << 20;
  // That look at all of a long history; 0: as many as there are processors.
  unsigned threads = 0;
  // Told how far it is while a history is counted. Where that is enough, older items are left out.
  SegmentStore::Watch watch;
  // Told of the item that whoever walks the history run by run comes to, for every segment.
  std::function<void(const History&, std::uint64_t number)> walked;
  // Once that is requested, calls are not listed any further, nothing more is found or counted, and
  // what was not looked at yet is left out: nobody waits for it.
  std::stop_token stop;
};

class History {
 public:
  // Of the newest item, where numbers begin there.
  static constexpr std::uint64_t kNewest = std::uint64_t{1} << 62;

  // Numbers begin with 1. REQUIRES: the snapshot has code, empty though it may be.
  explicit History(std::shared_ptr<const ThreadSnapshot> snapshot);

  // REQUIRES: the frame has code, and the source's records ran it.
  History(ThreadFrame frame, std::shared_ptr<const SegmentSource> source,
          const HistorySettings& options);

  // The number of the newest item; one less than that of the oldest when there is none.
  std::uint64_t newest() const { return newest_; }
  // The number of the oldest item. Looks at all items if nobody did.
  std::uint64_t oldest() const { return newest_ + 1 - size(); }
  // Whether there is an item of that number. Looks at what is newer.
  bool holds(std::uint64_t number) const;
  // Whether it is among those that were looked at already.
  bool has_met(std::uint64_t number) const;

  // Whether nobody waits any more for what is being made of it.
  bool is_abandoned() const { return stop_.stop_requested(); }
  // Whoever walks it tells so of the items that it comes to (HistorySettings::walked).
  void come_to(std::uint64_t number) const {
    if (walked_) walked_(*this, number);
  }

  // Instructions and gaps. They look at all items if nobody did.
  std::uint64_t size() const { return totals().items; }
  std::uint64_t gaps() const { return totals().gaps; }
  std::uint64_t instructions() const { return size() - gaps(); }
  std::uint64_t record_count() const { return totals().records; }

  // The oldest item is the first instruction that was ever recorded of the thread.
  bool complete() const { return frame_.complete; }

  // Calls `see` for every gap, oldest first; follows all records once more.
  void each_gap(const std::function<void(GapReason)>& see) const;

  // Calls `see` for every record, oldest first, as record() has it.
  void each_record(const std::function<void(const BranchRecord&)>& see) const;

  // Where the thread stands: the instruction to be executed next. Nothing when that is not known.
  std::optional<Address> stop() const;

  // The item's number: `index` from 1 to size(), or from -1 down to -size().
  std::optional<std::uint64_t> resolve(std::int64_t index) const;

  // All of it, to be written somewhere. Copies the records.
  ThreadSnapshot snapshot() const;

  // From 1, the oldest. REQUIRES: holds(number).
  std::uint64_t from_oldest(std::uint64_t number) const { return number - oldest() + 1; }
  // From -1, the newest.
  std::int64_t from_newest(std::uint64_t number) const {
    return static_cast<std::int64_t>(number - newest_) - 1;
  }

  const ThreadFrame& frame() const { return frame_; }

  // One past the newest record. Where it is not known how many records there are, and numbers begin
  // at the newest, positions do as well: it is then kNewest.
  Position record_end() const { return record_end_; }
  // The record at a position, with all the instructions of its run; nothing when it is not held.
  std::optional<BranchRecord> record(Position position) const;

  // What is kept beside the source: of all segments, and of those read last.
  std::size_t index_size_bytes() const { return store_->index_bytes() + store_->cached_bytes(); }

 private:
  friend class HistoryCursor;
  friend class HistoryRuns;

  // A segment where it lies in the history.
  struct Placed {
    std::shared_ptr<const DecodedSegment> segment;
    std::size_t index = 0;           // of the segment
    std::uint64_t first = 0;         // number of its first item
    std::uint64_t first_record = 0;  // position of its first record
  };

  SegmentStore::Totals totals() const;
  std::optional<Placed> placed(std::size_t index) const;
  std::optional<Placed> holding(std::uint64_t number) const;
  // Whether the segment's first run began in the older one.
  bool goes_on(std::size_t index) const;

  ThreadFrame frame_;
  std::shared_ptr<SegmentStore> store_;
  unsigned threads_ = 0;
  std::stop_token stop_;
  decltype(HistorySettings::walked) walked_;
  std::uint64_t newest_ = 0;
  Position record_end_;
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

  void seek_to_newest() { seek(history_->newest()); }
  // Looks at all items if nobody did.
  void seek_to_oldest() { seek(history_->oldest()); }
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
    std::uint64_t before = 0;  // items of all earlier records of the segment
    Step step;
  };
  // Instructions of one run that were read already; long runs are cut into such windows.
  static constexpr std::size_t kWindow_insns = 4096;

  void seek_inside(std::uint64_t item);
  void load_group(std::size_t group);
  void show_gap(const Part& part, std::size_t record);
  void show_instruction(const Part& part, std::size_t record, std::uint64_t offset);
  void load_window(const Part& part, std::size_t record, std::uint64_t offset);

  const History* history_;
  RunReader reader_;
  HistoryItem item_;

  History::Placed place_;
  std::size_t group_ = ~std::size_t{0};
  std::vector<Part> parts_;
  std::size_t part_ = 0;
  FlowState behind_;  // the state after the group

  std::size_t window_record_ = ~std::size_t{0};
  std::uint64_t window_first_ = 0;
  std::vector<Address> window_;
};

}  // namespace tailtrace
