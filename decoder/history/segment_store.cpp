#include "decoder/history/segment_store.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <system_error>
#include <thread>

#include "decoder/base/no_signals.h"
#include "decoder/history/segment_counter.h"

namespace tailtrace {
namespace {

// No straight run is longer; a corrupt file may claim billions of instructions.
constexpr std::uint64_t kMaxRun_insns = 1ull << 24;
// Runs are followed once each, loops not again: honest records never need this much. Whoever does
// is believed short runs only from there on, so that no file keeps us busy for minutes.
constexpr std::uint64_t kMaxWork_insns = 1ull << 23;
constexpr std::uint64_t kMaxDoubtfulRun_insns = 64;

bool is_near_branch(const BranchRecord& record) {
  return record.kind >= RecordKind::kConditional && record.kind <= RecordKind::kIndirectCall &&
         !record.is_async() && !record.to.is_null();
}

constexpr std::chrono::milliseconds kWatchPeriod(50);
// Fewer segments than this for each thread are not worth starting one.
constexpr std::size_t kSegmentsWorthAThread = 4;

}  // namespace

// --- A segment -------------------------------------------------------------------------------

DecodedSegment::DecodedSegment(SegmentRecords content, RunReader& reader, std::uint64_t doubtful)
    : content_(std::move(content)), end_(content_.entry), doubtful_(doubtful) {
  const std::span<const BranchRecord> records = content_.records;
  groups_.reserve(records.size() / kGroupRecords + 1);
  const std::uint64_t walked = reader.walked_insns();
  bool agrees = true;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (i % kGroupRecords == 0) groups_.push_back({items_, end_});
    if (doubtful_ > i &&
        reader.walked_insns() - walked > kMaxWork_insns + i * kMaxDoubtfulRun_insns)
      doubtful_ = i;
    Step step = follow(i, end_, reader);
    items_ += step.items();
    gaps_ += step.has_gap ? 1 : 0;
    agrees = agrees && (step.shown == records[i].insns || !is_near_branch(records[i]));
  }
  // Whoever follows them once more need not hold them against the code again.
  content_.follows_code = content_.follows_code || agrees;
}

std::size_t DecodedSegment::group_of(std::uint64_t item) const {
  auto after = std::upper_bound(groups_.begin(), groups_.end(), item,
                                [](std::uint64_t n, const RecordGroup& g) { return n < g.before; });
  return static_cast<std::size_t>(after - groups_.begin()) - 1;
}

Step DecodedSegment::follow(std::size_t record, FlowState& state, RunReader& reader) const {
  const BranchRecord& r = content_.records[record];
  const bool agrees = content_.follows_code && state.place == FlowState::Place::kRunning &&
                      is_near_branch(r) && r.insns != 0;
  if (!agrees)
    return reader.advance(state, r, record < doubtful_ ? kMaxRun_insns : kMaxDoubtfulRun_insns);
  Step step;
  step.start = state.at;
  step.shown = r.insns;
  step.epoch = state.epoch;
  state.at = r.to;
  state.last_gap = GapReason::kNone;
  return step;
}

std::size_t DecodedSegment::size_bytes() const {
  return sizeof *this + content_.made.capacity() * sizeof(BranchRecord) +
         groups_.capacity() * sizeof(RecordGroup);
}

// --- The store -------------------------------------------------------------------------------

// What a thread reads with; it remembers much, and is handed on.
struct SegmentStore::Worker {
  Worker(const SegmentSource& source, const CodeImage& code)
      : reader(source.reader()),
        counter(dynamic_cast<SegmentCounter*>(reader.get())),
        runs(code, kFollowedRuns) {}
  std::unique_ptr<SegmentReader> reader;
  SegmentCounter* counter;  // the same; null: it can only read
  RunReader runs;

  // Does `work` with one of them, and lets go of the lock meanwhile.
  template <class Work>
  static auto lend(SegmentStore& store, Lock& lock, const Work& work) {
    std::unique_ptr<Worker> worker;
    if (!store.idle_.empty()) {
      worker = std::move(store.idle_.back());
      store.idle_.pop_back();
    }
    lock.unlock();
    if (worker == nullptr) worker = std::make_unique<Worker>(*store.source_, *store.code_);
    auto done = work(*worker);
    lock.lock();
    // Of a short history nothing is left to be read, and there may be thousands of them.
    const bool is_short = store.cut_end_ == 0 && store.cut_ < kSegmentsWorthAThread;
    if (!is_short) store.idle_.push_back(std::move(worker));
    return done;
  }

  // Whether another segment's records would not be kept, as far as those that are tell.
  static bool is_full(const SegmentStore& store) {
    return !store.kept_.empty() &&
           store.kept_bytes_ + store.kept_bytes_ / store.kept_.size() > store.cache_bytes_;
  }
};

SegmentStore::SegmentStore(std::shared_ptr<const SegmentSource> source,
                           std::shared_ptr<const CodeImage> code, std::size_t cache_bytes)
    : source_(std::move(source)),
      code_(std::move(code)),
      cache_bytes_(cache_bytes),
      cut_end_(source_->size()) {}

SegmentStore::~SegmentStore() = default;

SegmentStore::Decoded SegmentStore::read(Lock& lock, Extent extent, std::uint64_t doubtful) {
  return Worker::lend(*this, lock, [&](Worker& worker) {
    return std::make_shared<const DecodedSegment>(worker.reader->read(extent), worker.runs,
                                                  doubtful);
  });
}

// Looks at a segment that nobody has looked at, or waits until somebody else did with another. The
// lock is not held meanwhile. Records that would not be kept are not made, if it can be told
// without them what is in the segment. False: all were looked at.
bool SegmentStore::look_at_next(Lock& lock) {
  if (!all_cut_) {
    if (cutter_ == nullptr) cutter_ = source_->reader();
    if (std::optional<Extent> extent = cutter_->cut(cut_end_)) {
      cut_end_ = extent->begin;
      std::size_t index = cut_++;
      all_cut_ = cut_end_ == 0;
      if (all_cut_) cutter_.reset();
      std::optional<SegmentCount> count;
      if (Worker::is_full(*this))
        count = Worker::lend(*this, lock, [&](Worker& worker) {
          return worker.counter == nullptr ? std::nullopt : worker.counter->count(*extent);
        });
      if (count)
        finished_[index] = {*extent, count->items, 0, count->records, 0, 0, kAll, count->has_seam};
      publish(index, *extent, count ? nullptr : read(lock, *extent, kAll));
      return true;
    }
    all_cut_ = true;
    cutter_.reset();
  }
  if (facts_.size() == cut_) return false;
  looked_.wait(lock);
  return true;
}

void SegmentStore::publish(std::size_t index, Extent extent, const Decoded& decoded) {
  if (decoded != nullptr)
    finished_[index] = {
        extent, decoded->items(),    decoded->gaps(),           decoded->record_count(), 0,
        0,      decoded->doubtful(), decoded->seam() != nullptr};
  for (auto it = finished_.find(facts_.size()); it != finished_.end();
       it = finished_.find(facts_.size())) {
    Facts& facts = facts_.emplace_back(it->second);
    finished_.erase(it);
    facts.newer_items = found_.items;
    facts.newer_records = found_.records;
    found_.items += facts.items;
    found_.records += facts.records;
    found_.gaps += facts.gaps;
  }
  // Whoever only counts does not drive out what was asked for.
  if (decoded != nullptr && kept_bytes_ + decoded->size_bytes() <= cache_bytes_)
    keep(index, decoded);
  looked_.notify_all();
}

namespace {

// As many threads as there can be.
template <class Work>
std::vector<std::thread> start(std::uint64_t count, const Work& work) {
  std::vector<std::thread> threads;
  NoSignals inherited;
  try {
    while (threads.size() < count) threads.emplace_back(work);
  } catch (const std::system_error&) {
    // The caller does all that nobody helps with.
  }
  return threads;
}

}  // namespace

bool SegmentStore::look_at_all(unsigned threads, const Watch& watch) {
  Lock lock(mutex_);
  if (knows_all()) return true;
  // Asking for processors reads a file of the system.
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  bool stopped = false;
  auto help = [&] {
    Lock helper_lock(mutex_);
    while (!stopped && look_at_next(helper_lock)) {
    }
  };
  look_at_next(lock);
  const std::uint64_t typical = std::max<std::uint64_t>(1, source_->size() - cut_end_);
  const std::uint64_t worthwhile = cut_end_ / typical / kSegmentsWorthAThread;
  std::vector<std::thread> helpers = start(std::min<std::uint64_t>(threads - 1, worthwhile), help);
  auto next_watch = std::chrono::steady_clock::now() + kWatchPeriod;
  while (!stopped && look_at_next(lock)) {
    if (watch == nullptr || std::chrono::steady_clock::now() < next_watch) continue;
    lock.unlock();
    const bool enough = !watch(progress());
    lock.lock();
    stopped = enough;
    next_watch = std::chrono::steady_clock::now() + kWatchPeriod;
  }
  lock.unlock();
  for (std::thread& helper : helpers) helper.join();
  lock.lock();
  return knows_all();
}

void SegmentStore::leave_out_older() {
  std::lock_guard lock(mutex_);
  all_cut_ = true;
}

SegmentStore::Totals SegmentStore::totals() const {
  std::lock_guard lock(mutex_);
  assert(knows_all());
  return found_;
}

std::size_t SegmentStore::known() const {
  std::lock_guard lock(mutex_);
  return facts_.size();
}

SegmentStore::Progress SegmentStore::progress() const {
  std::lock_guard lock(mutex_);
  std::uint64_t size = source_->size();
  return {facts_.empty() ? 0 : size - facts_.back().extent.begin, size, found_};
}

// The segment of which `known(facts)` is true: it is of no newer one, and of all older ones.
template <class Known>
std::optional<std::size_t> SegmentStore::find(Known known) {
  Lock lock(mutex_);
  for (std::size_t from = 0;;) {
    auto found = std::partition_point(facts_.begin() + static_cast<std::ptrdiff_t>(from),
                                      facts_.end(), [&](const Facts& f) { return !known(f); });
    if (found != facts_.end()) return static_cast<std::size_t>(found - facts_.begin());
    from = facts_.size();
    if (!look_at_next(lock)) return std::nullopt;
  }
}

std::optional<std::size_t> SegmentStore::holding_item(std::uint64_t back) {
  return find([back](const Facts& f) { return f.newer_items + f.items >= back; });
}

std::optional<std::size_t> SegmentStore::holding_record(std::uint64_t back) {
  return find([back](const Facts& f) { return f.newer_records + f.records >= back; });
}

std::optional<SegmentStore::Facts> SegmentStore::facts(std::size_t index) {
  Lock lock(mutex_);
  while (facts_.size() <= index)
    if (!look_at_next(lock)) return std::nullopt;
  return facts_[index];
}

std::shared_ptr<const DecodedSegment> SegmentStore::segment(std::size_t index) {
  Lock lock(mutex_);
  assert(index < facts_.size());
  if (auto it = kept_.find(index); it != kept_.end()) {
    uses_.splice(uses_.begin(), uses_, it->second.use);
    return it->second.decoded;
  }
  Decoded decoded = read(lock, facts_[index].extent, facts_[index].doubtful);
  assert(decoded->items() == facts_[index].items);
  keep(index, decoded);
  return decoded;
}

// The newest used stays even if it is larger than the cache.
void SegmentStore::keep(std::size_t index, const Decoded& decoded) {
  if (kept_.contains(index)) return;
  uses_.push_front(index);
  kept_.emplace(index, Kept{decoded, uses_.begin()});
  kept_bytes_ += decoded->size_bytes();
  while (kept_bytes_ > cache_bytes_ && uses_.size() > 1) drop_oldest_used();
}

void SegmentStore::drop_oldest_used() {
  auto it = kept_.find(uses_.back());
  kept_bytes_ -= it->second.decoded->size_bytes();
  kept_.erase(it);
  uses_.pop_back();
}

std::size_t SegmentStore::cached_bytes() const {
  std::lock_guard lock(mutex_);
  return kept_bytes_;
}

std::size_t SegmentStore::index_bytes() const {
  std::lock_guard lock(mutex_);
  return facts_.capacity() * sizeof(Facts);
}

}  // namespace tailtrace
