// SegmentStore: the segments of a source, newest first: what is in each of them, as far as they
// were looked at, and the records of those that were read last.
//
// Segments have indices from 0, the newest, which never change. Of a segment that was read a few
// numbers are kept for good; its records are kept as long as there is room, and read again.
//
// Threading: any number of threads; they help each other with what all of them wait for.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <unordered_map>

#include "decoder/history/segment_source.h"

namespace tailtrace {

// Where a group of records is entered.
struct RecordGroup {
  std::uint64_t before = 0;  // items of all earlier records of the segment
  FlowState state;
};

// A segment's records, and what can be entered at which of them. Immutable.
class DecodedSegment {
 public:
  static constexpr std::size_t kGroupRecords = 64;

  // Follows every record once, with `reader`; believes only short runs from `doubtful` on.
  DecodedSegment(SegmentRecords content, RunReader& reader, std::uint64_t doubtful);

  std::span<const BranchRecord> records() const { return content_.records; }
  // Without a seam.
  std::uint64_t record_count() const { return content_.records.size() - content_.has_seam; }
  // The record that ends the segment inside a run; null when there is none.
  const BranchRecord* seam() const {
    return content_.has_seam ? &content_.records.back() : nullptr;
  }
  std::uint64_t items() const { return items_; }
  std::uint64_t gaps() const { return gaps_; }
  const FlowState& end() const { return end_; }
  std::uint64_t time_before(std::size_t record) const {
    return record == 0 ? content_.time_before : content_.records[record - 1].time;
  }

  const std::vector<RecordGroup>& groups() const { return groups_; }
  // The group that holds an item, counted from 0, the segment's oldest. REQUIRES: there is one.
  std::size_t group_of(std::uint64_t item) const;
  // What a record contributes; `state` moves behind it.
  Step follow(std::size_t record, FlowState& state, RunReader& reader) const;
  std::uint64_t doubtful() const { return doubtful_; }

  std::size_t size_bytes() const;

 private:
  SegmentRecords content_;
  std::vector<RecordGroup> groups_;
  FlowState end_;
  std::uint64_t items_ = 0;
  std::uint64_t gaps_ = 0;
  std::uint64_t doubtful_;
};

class SegmentStore {
 public:
  static constexpr std::uint64_t kAll = ~0ull;  // a segment with no doubtful record

  // What stays known of a segment.
  struct Facts {
    Extent extent;
    std::uint64_t items = 0, gaps = 0, records = 0;
    std::uint64_t newer_items = 0, newer_records = 0;  // of all newer segments
    std::uint64_t doubtful = kAll;
    bool has_seam = false;
  };

  struct Totals {
    std::uint64_t items = 0, gaps = 0, records = 0;
  };

  struct Progress {
    std::uint64_t done = 0, size = 0;  // the source's units
    Totals found;                      // what is known of the newest part
  };
  // Told now and then; false: enough for now.
  using Watch = std::function<bool(const Progress&)>;

  SegmentStore(std::shared_ptr<const SegmentSource> source, std::shared_ptr<const CodeImage> code,
               std::size_t cache_bytes);
  ~SegmentStore();

  // Reads segments until all are known, on so many threads; 0: one for each processor. False:
  // `watch` had enough.
  bool look_at_all(unsigned threads, const Watch& watch);

  // From now on there is nothing older than what is known. REQUIRES: nobody else looks at segments.
  void leave_out_older();

  // Of all segments. REQUIRES: all are known.
  Totals totals() const;

  // How many segments are known.
  std::size_t known() const;

  // What is known so far.
  Progress progress() const;

  // The facts of a segment; those that are newer are looked at first. Nothing: there is none.
  std::optional<Facts> facts(std::size_t index);

  // The segment that holds an item or a record, counted back from 1, the newest.
  std::optional<std::size_t> holding_item(std::uint64_t back);
  std::optional<std::size_t> holding_record(std::uint64_t back);

  // REQUIRES: facts(index) has a value.
  std::shared_ptr<const DecodedSegment> segment(std::size_t index);

  // What the records take that are held just now, and what the facts take.
  std::size_t cached_bytes() const;
  std::size_t index_bytes() const;

 private:
  struct Worker;
  using Lock = std::unique_lock<std::mutex>;
  using Decoded = std::shared_ptr<const DecodedSegment>;

  // REQUIRES: the mutex is held.
  bool knows_all() const { return all_cut_ && facts_.size() == cut_; }
  bool look_at_next(Lock& lock);
  void publish(std::size_t index, Extent extent, const Decoded& decoded);
  template <class Known>
  std::optional<std::size_t> find(Known known);
  Decoded read(Lock& lock, Extent extent, std::uint64_t doubtful);
  void keep(std::size_t index, const Decoded& decoded);
  void drop_oldest_used();

  const std::shared_ptr<const SegmentSource> source_;
  const std::shared_ptr<const CodeImage> code_;
  const std::size_t cache_bytes_;

  mutable std::mutex mutex_;  // guards all that follows
  std::condition_variable looked_;
  std::vector<std::unique_ptr<Worker>> idle_;
  std::unique_ptr<SegmentReader> cutter_;
  std::uint64_t cut_end_;
  std::size_t cut_ = 0;  // segments handed out to be looked at
  bool all_cut_ = false;
  std::vector<Facts> facts_;                         // of the newest ones, without a hole
  std::unordered_map<std::size_t, Facts> finished_;  // of others
  Totals found_;

  struct Kept {
    Decoded decoded;
    std::list<std::size_t>::iterator use;
  };
  std::unordered_map<std::size_t, Kept> kept_;
  std::list<std::size_t> uses_;  // the last used is in front
  std::size_t kept_bytes_ = 0;
};

}  // namespace tailtrace
