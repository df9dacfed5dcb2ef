// Histories read segment by segment: the same items as one read in one piece, whatever is cut where
// and read when; the newest first, and no more than is asked for.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <random>
#include <thread>

#include "decoder/history/opened_thread.h"
#include "decoder/history/pt_segments.h"
#include "decoder/history/record_slices.h"
#include "decoder/history/runs.h"
#include "decoder/history/segment_counter.h"
#include "decoder/pt/record_sink.h"
#include "decoder/pt/synthesis/synthesis.h"
#include "tests/support/random_program.h"
#include "tests/support/toy_program.h"

namespace tailtrace {
namespace {

using Numbers = HistorySettings::Numbers;

// What is known of an item, but for its time and number.
struct Seen {
  GapReason gap = GapReason::kNone;
  Address address;
  RecordKind branch = RecordKind::kNone;
  Address to;
  std::uint64_t record = 0;
  bool begins_run = false;

  friend bool operator==(const Seen&, const Seen&) = default;
};

Seen seen(const HistoryCursor& cursor) {
  const HistoryItem& item = cursor.item();
  Seen one{item.gap.reason, item.instruction.address, {}, {}, item.record.value, item.begins_run};
  if (item.branch != nullptr) one.branch = item.branch->kind;
  if (item.branch != nullptr) one.to = item.branch->to;
  return one;
}

std::vector<Seen> backwards(const History& history) {
  std::vector<Seen> all;
  HistoryCursor cursor(history);
  for (cursor.seek_to_newest(); cursor.valid(); cursor.prev()) all.push_back(seen(cursor));
  std::reverse(all.begin(), all.end());
  return all;
}

std::vector<Seen> forwards(const History& history) {
  std::vector<Seen> all;
  HistoryCursor cursor(history);
  for (cursor.seek_to_oldest(); cursor.valid(); cursor.next()) all.push_back(seen(cursor));
  return all;
}

std::vector<Address> addresses(const std::vector<Seen>& items) {
  std::vector<Address> found;
  for (const Seen& item : items)
    if (item.gap == GapReason::kNone) found.push_back(item.address);
  return found;
}

std::shared_ptr<const SegmentSource> slices(const std::shared_ptr<const ThreadSnapshot>& snapshot,
                                            std::size_t slice_records) {
  return std::make_shared<RecordSlices>(snapshot, snapshot->records, *snapshot, slice_records);
}

// Counts what is read of another source.
class Watched final : public SegmentSource {
 public:
  explicit Watched(std::shared_ptr<const SegmentSource> source) : source_(std::move(source)) {}
  std::uint64_t size() const override {
    ++asks_;
    return source_->size();
  }
  std::optional<std::uint64_t> record_count() const override { return source_->record_count(); }
  std::unique_ptr<SegmentReader> reader() const override {
    return std::make_unique<Reader>(source_->reader(), reads_);
  }
  std::size_t reads() const { return reads_; }
  std::size_t asks() const { return asks_; }

 private:
  class Reader final : public SegmentReader {
   public:
    Reader(std::unique_ptr<SegmentReader> reader, std::atomic<std::size_t>& reads)
        : reader_(std::move(reader)), reads_(reads) {}
    std::optional<Extent> cut(std::uint64_t end) override { return reader_->cut(end); }
    SegmentRecords read(Extent extent) override {
      ++reads_;
      return reader_->read(extent);
    }

   private:
    std::unique_ptr<SegmentReader> reader_;
    std::atomic<std::size_t>& reads_;
  };

  std::shared_ptr<const SegmentSource> source_;
  mutable std::atomic<std::size_t> reads_ = 0, asks_ = 0;
};

// A run of a toy program, which is truth, with the record that closes it.
ToyRun toy_run(std::uint64_t seed, std::uint64_t steps) {
  return ToyProgram(seed, 4, 6).run(seed, steps, seed % 2 == 0);
}

TEST(HistorySegments, AnySlicesShowWhatWasExecuted) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    ToyRun run = toy_run(seed, 3000);
    std::vector<Seen> whole = forwards(History(run.snapshot));
    ASSERT_EQ(addresses(whole), run.executed);
    for (std::size_t slice : {2, 7, 64, 500}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", slices of " << slice);
      for (Numbers numbers : {Numbers::kFromOldest, Numbers::kFromNewest}) {
        History history(*run.snapshot, slices(run.snapshot, slice), {numbers, 4096, 2, {}, {}, {}});
        ASSERT_EQ(backwards(history), whole);
        ASSERT_EQ(forwards(history), whole);
        EXPECT_EQ(history.size(), whole.size());
      }
    }
  }
}

TEST(HistorySegments, WhatWasMetIsKnownWithoutLooking) {
  ToyRun run = toy_run(2, 2000);
  History history(*run.snapshot, slices(run.snapshot, 64),
                  {Numbers::kFromNewest, 1 << 20, 2, {}, {}, {}});
  EXPECT_FALSE(history.has_met(History::kNewest));
  ASSERT_TRUE(history.holds(History::kNewest));
  EXPECT_TRUE(history.has_met(History::kNewest));
  EXPECT_FALSE(history.has_met(History::kNewest + 1));
  EXPECT_FALSE(history.has_met(History::kNewest - 1500));
  const std::uint64_t size = history.size();
  EXPECT_TRUE(history.has_met(History::kNewest - size + 1));
  EXPECT_FALSE(history.has_met(History::kNewest - size));
}

// Threads to look with, and the processors that they would run on, were asked for with each item.
TEST(HistorySegments, WhatIsKnownIsNotLookedForAgain) {
  ToyRun run = toy_run(2, 2000);
  auto source = std::make_shared<Watched>(slices(run.snapshot, 64));
  History history(*run.snapshot, source, {Numbers::kFromNewest, 1 << 20, 2, {}, {}, {}});
  const std::uint64_t size = history.size();
  const std::size_t asks = source->asks(), reads = source->reads();
  EXPECT_GT(asks, 0u);
  for (std::uint64_t item = 1; item <= 100; ++item)
    EXPECT_EQ(history.from_oldest(History::kNewest - size + item), item);
  EXPECT_EQ(source->asks(), asks);
  EXPECT_EQ(source->reads(), reads);
}

TEST(HistorySegments, RecordsAreReachedAtRandom) {
  ToyRun run = toy_run(4, 5000);
  auto snapshot = std::make_shared<ThreadSnapshot>(*run.snapshot);
  snapshot->first.value = 1000;
  History history(*snapshot, slices(snapshot, 16), {Numbers::kFromNewest, 0, 1, {}, {}, {}});
  std::mt19937_64 random(1);
  for (int i = 0; i < 500; ++i) {
    std::uint64_t at = random() % snapshot->records.size();
    ASSERT_EQ(history.record({1000 + at}), snapshot->records[at]);
  }
  EXPECT_FALSE(history.record({999}));
  EXPECT_FALSE(history.record(snapshot->end()));
  EXPECT_EQ(history.snapshot().records, snapshot->records);
}

// From any item on, run by run, and each run that crosses segments whole.
TEST(HistorySegments, RunsGoOnAcrossSegments) {
  ToyRun run = toy_run(2, 2000);
  History whole(run.snapshot);
  History cut(*run.snapshot, slices(run.snapshot, 8), {});
  ASSERT_EQ(cut.size(), whole.size());
  for (std::uint64_t number = 1; number <= whole.size(); number += 37) {
    HistoryRuns expected(whole, number), got(cut, number);
    for (HistoryRun a, b; expected.next(a);) {
      ASSERT_TRUE(got.next(b));
      ASSERT_EQ(a.first, b.first);
      ASSERT_EQ(a.step.shown, b.step.shown);
      ASSERT_EQ(*a.record, *b.record);
      ASSERT_EQ(a.time_before, b.time_before);
    }
    HistoryRun none;
    ASSERT_FALSE(got.next(none));
  }
}

TEST(HistorySegments, TheNewestScreenReadsTheNewestSegmentOnly) {
  ToyRun run = toy_run(3, 20000);
  auto source = std::make_shared<Watched>(slices(run.snapshot, 256));
  History history(*run.snapshot, source, {Numbers::kFromNewest, 1 << 20, 2, {}, {}, {}});
  EXPECT_EQ(source->reads(), 0u);
  HistoryCursor cursor(history);
  cursor.seek_to_newest();
  for (int i = 0; i < 50; ++i) cursor.prev();
  ASSERT_TRUE(cursor.valid());
  EXPECT_EQ(cursor.item().instruction.address, run.executed[run.executed.size() - 51]);
  EXPECT_EQ(source->reads(), 1u);
  EXPECT_EQ(history.from_newest(cursor.item().number), -51);
}

// Numbers stay what they are while older segments are read, by this thread and by others.
TEST(HistorySegments, NumbersNeverChange) {
  ToyRun run = toy_run(5, 20000);
  History history(*run.snapshot, slices(run.snapshot, 64),
                  {Numbers::kFromNewest, 1 << 14, 2, {}, {}, {}});
  std::vector<std::thread> readers;
  std::atomic<int> wrong = 0;
  for (unsigned seed = 0; seed < 3; ++seed)
    readers.emplace_back([&, seed] {
      std::mt19937_64 random(seed);
      HistoryCursor cursor(history);
      for (int i = 0; i < 300; ++i) {
        std::uint64_t back = random() % run.executed.size();
        cursor.seek(history.newest() - back);
        bool right = cursor.valid() && cursor.item().instruction.address ==
                                           run.executed[run.executed.size() - 1 - back];
        if (!right) ++wrong;
      }
    });
  EXPECT_EQ(history.size(), run.executed.size());
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(history.oldest(), History::kNewest + 1 - run.executed.size());
  EXPECT_EQ(history.from_oldest(history.newest()), run.executed.size());
  EXPECT_EQ(history.resolve(1), history.oldest());
  EXPECT_EQ(history.resolve(-1), history.newest());
  EXPECT_FALSE(history.holds(history.oldest() - 1));
  EXPECT_FALSE(history.holds(history.newest() + 1));
}

TEST(HistorySegments, KeepsNoMoreThanItsMemory) {
  ToyRun run = toy_run(7, 50000);
  constexpr std::size_t kCache_bytes = 20000;
  SegmentStore store(slices(run.snapshot, 64), run.snapshot->code, kCache_bytes);
  EXPECT_TRUE(store.look_at_all(2, nullptr));
  EXPECT_LE(store.cached_bytes(), kCache_bytes);
  for (std::size_t i = 0; store.facts(i); ++i) {
    EXPECT_EQ(store.segment(i)->items(), store.facts(i)->items);
    EXPECT_LE(store.cached_bytes(), kCache_bytes);
  }
}

TEST(HistorySegments, CountingSaysHowFarItIsAndCanBeEnded) {
  ToyRun run = toy_run(9, 50000);
  SegmentStore store(slices(run.snapshot, 64), run.snapshot->code, 1 << 20);
  SegmentStore::Progress before = store.progress();
  EXPECT_EQ(before.done, 0u);
  EXPECT_EQ(before.size, run.snapshot->records.size());
  EXPECT_TRUE(store.look_at_all(1, nullptr));
  EXPECT_EQ(store.progress().done, before.size);
  EXPECT_EQ(store.progress().found.items, run.executed.size());
}

// A source of which each segment takes a while, so that whoever counts is asked.
class Slow final : public SegmentSource {
 public:
  explicit Slow(std::shared_ptr<const ThreadSnapshot> s) : slices_(slices(s, 64)) {}
  std::uint64_t size() const override { return slices_->size(); }
  std::optional<std::uint64_t> record_count() const override { return slices_->record_count(); }
  std::unique_ptr<SegmentReader> reader() const override {
    struct Reader final : SegmentReader {
      std::unique_ptr<SegmentReader> below;
      std::optional<Extent> cut(std::uint64_t end) override { return below->cut(end); }
      SegmentRecords read(Extent extent) override {
        std::this_thread::sleep_for(std::chrono::milliseconds(60));
        return below->read(extent);
      }
    };
    auto reader = std::make_unique<Reader>();
    reader->below = slices_->reader();
    return reader;
  }

 private:
  std::shared_ptr<const SegmentSource> slices_;
};

TEST(HistorySegments, WhatWasCountedUntilItHadEnoughIsTheHistory) {
  ToyRun run = toy_run(9, 50000);
  run.snapshot->complete = true;
  HistorySettings settings;
  settings.threads = 1;
  settings.watch = [](const SegmentStore::Progress&) { return false; };
  History history(*run.snapshot, std::make_shared<Slow>(run.snapshot), settings);
  ASSERT_GT(history.size(), 0u);
  ASSERT_LT(history.size(), run.executed.size());
  EXPECT_FALSE(history.complete());
  std::vector<Address> found = addresses(forwards(history));
  EXPECT_EQ(history.oldest(), 1u);
  EXPECT_EQ(found, std::vector<Address>(run.executed.end() - static_cast<long>(found.size()),
                                        run.executed.end()));
}

TEST(HistorySegments, NobodyCountsAnAbandonedHistoryToItsEnd) {
  ToyRun run = toy_run(9, 50000);
  std::stop_source stop;
  HistorySettings settings;
  settings.threads = 1;
  settings.numbers = Numbers::kFromNewest;
  settings.stop = stop.get_token();
  History history(*run.snapshot, std::make_shared<Slow>(run.snapshot), settings);
  stop.request_stop();
  EXPECT_LT(history.size(), run.executed.size());
  EXPECT_TRUE(history.holds(history.oldest()));
  EXPECT_FALSE(history.holds(history.oldest() - 1));
}

TEST(HistorySegments, TheNewestRecordsAreCutOffWithTheirEpochAndPosition) {
  ToyRun run = toy_run(6, 4000);
  run.snapshot->complete = true;
  OpenedThread all = opened_thread({run.snapshot, {}, {}});
  EXPECT_TRUE(all.frame.complete);
  OpenedThread newest = opened_thread({run.snapshot, {}, {}}, 100);
  EXPECT_FALSE(newest.frame.complete);
  EXPECT_EQ(newest.frame.first.value, run.snapshot->end().value - 100);
  History history(newest.frame, newest.source, {});
  EXPECT_EQ(history.record_count(), 100u);
  std::vector<Address> found = addresses(forwards(history));
  ASSERT_GT(found.size(), 100u);
  EXPECT_EQ(found, std::vector<Address>(run.executed.end() - static_cast<long>(found.size()),
                                        run.executed.end()));
}

// A ring of gigabytes would be read from the disk for it.
TEST(HistorySegments, WhatIsCutOffIsNotRead) {
  ToyRun run = toy_run(6, 4000);
  const std::span newest = std::span(run.snapshot->records).last(100);
  constexpr std::size_t kHidden_bytes = 1 << 16, kShown_bytes = 1 << 12;
  void* const memory = ::mmap(nullptr, kHidden_bytes + kShown_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const records = static_cast<BranchRecord*>(memory);
  constexpr std::size_t kHidden = kHidden_bytes / sizeof *records;
  std::ranges::copy(newest, records + kHidden);
  ASSERT_EQ(::mprotect(memory, kHidden_bytes, PROT_NONE), 0);
  const std::span<const BranchRecord> all(records, kHidden + newest.size());
  const OpenedThread opened = records_in_place(*run.snapshot, nullptr, all, newest.size());
  History history(opened.frame, opened.source, {});
  EXPECT_EQ(history.record_count(), newest.size());
  ::munmap(memory, kHidden_bytes + kShown_bytes);
}

// --- Intel PT --------------------------------------------------------------------------------

struct Trace {
  Bytes bytes;
  std::shared_ptr<const CodeImage> code;
  pt::DecoderConfig config;
};

std::shared_ptr<ThreadSnapshot> linear(const Trace& trace) {
  pt::RecordSink sink;
  pt::make_flow_decoder(*trace.code, trace.config)->decode(trace.bytes, sink);
  sink.finish();
  auto snapshot = std::make_shared<ThreadSnapshot>();
  snapshot->records = sink.drain();
  snapshot->code = trace.code;
  return snapshot;
}

History in_segments(const Trace& trace, std::size_t least_bytes, Numbers numbers) {
  ThreadFrame frame;
  frame.code = trace.code;
  auto source = std::make_shared<PtSegments>(nullptr, trace.bytes, trace.code, trace.config,
                                             PtSegmentsOptions{least_bytes, {}, {}});
  return History(frame, source, {numbers, 1 << 16, 2, {}, {}, {}});
}

Trace random_trace(std::uint64_t seed, bool losses) {
  RandomProgram program(seed, 2 + seed % 50);
  WalkOptions walk_options;
  walk_options.branches = 1500;
  walk_options.transactions = losses && seed % 2 == 0;
  walk_options.asynchronous = walk_options.edges = walk_options.losses = losses;
  walk_options.times = true;
  Walk walk = random_walk(program, seed, walk_options);
  pt::SynthesisOptions options;
  options.timing = seed % 2 == 0 ? pt::SynthesisTiming::kNone : pt::SynthesisTiming::kCyc;
  options.return_compression = seed % 5 != 0;
  options.psb_period_bytes = 100 + seed % 4 * 150;
  options.pause_at_psb = seed % 4 == 3;
  Trace trace;
  trace.code = program.image();
  trace.config.timing = options.clocks;
  auto bytes = pt::synthesize(walk.snapshot.records, *program.image(), {}, options);
  EXPECT_TRUE(bytes);
  if (bytes) trace.bytes = std::move(*bytes);
  return trace;
}

TEST(HistorySegments, AreCountedAsTheyAreRead) {
  std::size_t counted = 0, all = 0;
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    const Trace trace = random_trace(seed, seed % 2 != 0);
    PtSegments source(nullptr, trace.bytes, trace.code, trace.config, {16, {}, {}});
    auto reader = source.reader(), other = source.reader();
    auto& counter = dynamic_cast<SegmentCounter&>(*reader);
    RunReader runs(*trace.code, 64);
    std::uint64_t end = source.size();
    for (std::optional<Extent> extent; (extent = reader->cut(end)); end = extent->begin) {
      const std::optional<SegmentCount> count = counter.count(*extent);
      const DecodedSegment decoded(other->read(*extent), runs, SegmentStore::kAll);
      // What was only looked at is read as ever.
      EXPECT_EQ(reader->read(*extent).made, other->read(*extent).made);
      ++all;
      if (!count) continue;
      ++counted;
      EXPECT_EQ(count->items, decoded.items());
      EXPECT_EQ(0u, decoded.gaps());
      EXPECT_EQ(count->records, decoded.record_count());
      EXPECT_EQ(count->has_seam, decoded.seam() != nullptr);
      EXPECT_EQ(decoded.doubtful(), SegmentStore::kAll);
    }
  }
  EXPECT_GT(counted * 5, all) << all;
}

TEST(HistorySegments, AnyPtTraceIsTheSameAsDecodedInOnePiece) {
  for (std::uint64_t seed = 0; seed < 32; ++seed) {
    Trace trace = random_trace(seed, seed % 3 != 0);
    std::shared_ptr<ThreadSnapshot> whole = linear(trace);
    ASSERT_GT(whole->records.size(), 100u);
    std::vector<Seen> expected = forwards(History(whole));
    for (std::size_t least : {0, 300, 2000}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", at least " << least << " bytes");
      History history = in_segments(trace, least, Numbers::kFromOldest);
      ASSERT_EQ(backwards(history), expected);
      ASSERT_EQ(forwards(history), expected);
      std::vector<BranchRecord> records = history.snapshot().records;
      ASSERT_EQ(records.size(), whole->records.size());
      for (std::size_t i = 0; i < records.size(); ++i) {
        ASSERT_EQ(history.record({i}), records[i]);
        // The time of what was made at a seam is that of one side.
        if ((records[i].flags & kFlagSynthetic) != 0) records[i].time = whole->records[i].time;
        ASSERT_EQ(records[i], whole->records[i]) << i;
      }
    }
  }
}

TEST(HistorySegments, RunsCrossPtSegmentsWhole) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    Trace trace = random_trace(seed, seed % 2 != 0);
    History whole(linear(trace));
    History cut = in_segments(trace, 0, Numbers::kFromOldest);
    ASSERT_EQ(cut.size(), whole.size());
    for (std::uint64_t number = 1; number <= whole.size(); number += 101) {
      HistoryRuns expected(whole, number), got(cut, number);
      for (HistoryRun a, b; expected.next(a);) {
        ASSERT_TRUE(got.next(b));
        ASSERT_EQ(a.first, b.first) << "seed " << seed << " from " << number;
        ASSERT_EQ(a.step.start, b.step.start);
        ASSERT_EQ(a.step.shown, b.step.shown);
        ASSERT_EQ(a.record->insns, b.record->insns);
      }
    }
  }
}

TEST(HistorySegments, ATraceThatPausesAtEveryPsbIsCutThere) {
  Trace trace = random_trace(7, false);
  std::size_t segments = 0;
  PtSegments source(nullptr, trace.bytes, trace.code, trace.config, PtSegmentsOptions{0, {}, {}});
  auto reader = source.reader();
  for (auto extent = reader->cut(source.size()); extent; extent = reader->cut(extent->begin)) {
    ++segments;
    EXPECT_FALSE(pt::is_seam(trace.bytes, extent->begin));
  }
  EXPECT_GT(segments, 3u);
}

TEST(HistorySegments, ATraceThatNobodyCanReadIsOneGap) {
  Trace trace;
  trace.code = std::make_shared<CodeImage>();
  trace.bytes = Bytes(5000, 0x55);
  History lost = in_segments(trace, 100, Numbers::kFromNewest);
  EXPECT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost.gaps(), 1u);
  EXPECT_EQ(lost.oldest(), lost.newest());
  trace.bytes = Bytes(5000, 0);
  EXPECT_EQ(in_segments(trace, 100, Numbers::kFromOldest).size(), 0u);
  trace.bytes.clear();
  History empty = in_segments(trace, 100, Numbers::kFromNewest);
  EXPECT_EQ(empty.size(), 0u);
  EXPECT_FALSE(empty.stop());
  EXPECT_FALSE(empty.resolve(-1));
}

}  // namespace
}  // namespace tailtrace
