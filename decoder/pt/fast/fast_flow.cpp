#include "decoder/pt/fast/fast_flow.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "decoder/pt/fast/fast_loop.h"

namespace tailtrace::pt {
namespace {

// The longest packet of the fast path is a TIP of 9 bytes, read as 1 + 8.
constexpr std::size_t kReadAhead_bytes = 16;

}  // namespace

FastFlow::FastFlow(const CodeImage& code, const DecoderConfig& config,
                   std::shared_ptr<RowPool> pool)
    : config_(config), pool_(std::move(pool)), filler_(code) {
  filler_.expect_skl014(config.errata.skl014);
  filler_.use(*pool_, member_);
  pool_->join(member_);
}

void FastFlow::push_return(std::uint64_t ip, CodeMode mode) {
  std::unique_lock at_work(member_.at_work);
  StateKey key = enter(ip, mode, at_work);
  member_.kept.push(key);
}

bool FastFlow::pop_return(std::uint64_t& ip) {
  std::lock_guard at_work(member_.at_work);
  StateKey key = member_.kept.pop();
  if (key != 0) ip = pool_->rows().state(key).ip;
  return key != 0;
}

void FastFlow::clear_returns() {
  std::lock_guard at_work(member_.at_work);
  member_.kept.clear();
}

// Others may stay with the code that was: rows of other code are in another pool.
void FastFlow::set_epoch(Epoch epoch) {
  if (epoch == pool_->epoch()) return;
  const std::vector<Rows::State> returns = pool_->leave(member_);
  pool_ = std::make_shared<RowPool>(epoch);
  filler_.use(*pool_, member_);
  pool_->join(member_, returns);
}

// The state's key, whatever has to be moved or dropped for it.
StateKey FastFlow::enter(std::uint64_t ip, CodeMode mode, std::unique_lock<std::mutex>& at_work) {
  for (;;) {
    if (StateKey key = pool_->key_of(member_, ip, mode)) return key;
    begin_anew(at_work);
  }
}

// Keys change, or are dropped.
void FastFlow::begin_anew(std::unique_lock<std::mutex>& at_work) {
  at_work.unlock();
  pool_->make_room();
  pool_->drop_if_full();
  at_work.lock();
}

// When the newest rows did not pay, the next ones will not at once either.
void FastFlow::judge_rows() {
  if (fills_ < kFirstLook_fills) return;
  const bool is_first_look = fills_ < kProbe_fills;
  const bool is_hopeful = uses_ >= fills_ + fills_ / 16;
  if (is_first_look && is_hopeful) return;
  if (uses_ >= kWorthwhileUses * fills_) {
    next_rest_branches_ = kFirstRest_branches;
  } else {
    rest_branches_ = next_rest_branches_;
    next_rest_branches_ = std::min(2 * next_rest_branches_, kLongestRest_branches);
  }
  uses_ = fills_ = 0;
}

// For what a block pushes, and for rows that have no place of their own. Keys change.
void FastFlow::make_room(StateKey& state, std::unique_lock<std::mutex>& at_work) {
  KeyStack& stack = member_.kept;
  if (stack.top() + 4 * (kBlockWords + kPacketWords) > KeyStack::kCapacity) stack.settle();
  if (detours_ >= kToldAtOnce_detours) pool_->note_detours(std::exchange(detours_, 0));
  if (!pool_->wants_room()) return;
  stack.push(state);
  at_work.unlock();
  pool_->make_room();
  at_work.lock();
  state = stack.pop();
}

// What the effects of a block did.
void FastFlow::add_up(const Registers& r, PathTotals& totals, Place& place) {
  totals.insns += r.counts & Counts::kInsnMask;
  totals.branches += r.counts >> Counts::kBranchShift & Counts::kBranchMask;
  totals.records += r.counts >> Counts::kRecordShift;
  if (r.enabled) {
    place.enabled = true;
    place.insns = 0;
  }
  place.insns += (r.counts - r.counts_before_on) & Counts::kInsnMask;
}

// Outcomes that were read and are still to be used.
void FastFlow::give_back(const Registers& r, Place& place) {
  const std::uint8_t left = r.left != 0 ? r.left : r.deferred;
  place.outcome_count = left == 0 ? 0 : static_cast<unsigned>(std::bit_width(left)) - 2;
  place.outcomes = left >> 1 & ((1u << place.outcome_count) - 1);
  place.outcomes = place.outcomes << r.rest_count | (r.rest & ((1ull << r.rest_count) - 1));
  place.outcome_count += r.rest_count;
}

bool FastFlow::run(ByteSpan trace, std::size_t end, Place& place, Clock& clock, PathSink& sink) {
  if (end < kReadAhead_bytes || place.offset >= end - kReadAhead_bytes) return false;
  std::uint8_t first = trace[place.offset];
  bool common = place.outcome_count != 0 || ((first & 1) == 0 && first != 0x02) ||
                (first & 0x1f) == 0x0d || (first & 0x1f) == 0x01 || (first & 3) == 3 ||
                first == 0x59;
  if (!common || !TargetKey::can_hold(place.last_ip)) return false;
  std::unique_lock at_work(member_.at_work);
  if (pool_->is_full()) begin_anew(at_work);
  const StateKey first_state = enter(place.ip, place.mode, at_work);
  const std::shared_ptr<const EffectBook> book = pool_->rows().shared_book();
  const PathStart start{{place.ip}, {clock.known_ticks(), place.fresh_time}, place.time};
  CompactPath& path = sink.begin_path(start, book);
  const std::size_t first_word = path.words.size();
  Registers r{};
  r.at = trace.data() + place.offset;
  r.end = trace.data() + end - kReadAhead_bytes;
  r.last_ip = place.last_ip;
  r.state = first_state;
  r.stack = member_.kept.data();
  r.clock = &clock;
  r.start_ticks = start.first.ticks;
  r.stop_time = place.stop_time;
  r.mode = mode_key(place.mode);
  r.skd007 = config_.errata.skd007;
  r.pauses = sink.takes_pauses();
  r.time_end = r.at;
  r.cyc_end = place.fresh_time ? r.at : nullptr;
  r.used = place.time;
  r.rest = place.outcomes;
  r.rest_count = place.outcome_count;
  PathEnd path_end;
  PathTotals& totals = path_end.totals;
  for (bool more = true; more && path.words.size() - first_word < kMaxStretchWords;) {
    make_room(r.state, at_work);
    // What was dropped meanwhile no word of this stretch can name.
    if (pool_->rows().shared_book() != book) break;
    r.top = member_.kept.top();
    r.out = r.block = path.words.room(kBlockWords + kPacketWords);
    r.block_word = static_cast<std::uint32_t>(path.words.size() - first_word);
    TimeMark* const marks = r.mark = path.marks.room(kBlockMarks);
    more = run_block(r);
    member_.kept.set_top(r.top);
    path.words.grow(static_cast<std::size_t>(r.out - r.block));
    path.marks.grow(static_cast<std::size_t>(r.mark - marks));
    uses_ += static_cast<std::uint64_t>(r.out - r.block);
    judge_rows();
    add_up(r, totals, place);
  }
  place.offset = static_cast<std::size_t>(r.at - trace.data());
  place.fresh_time = r.cyc_end == r.at;
  // Timing packets at the end are of no packet that was used.
  if (r.time_end != r.at) r.used.ticks = not_before(r.used.ticks, clock.known_ticks());
  place.time = r.used;
  place.last_ip = r.last_ip;
  place.ip = pool_->rows().state(r.state).ip;
  at_work.unlock();
  give_back(r, place);
  path_end.at = {place.ip};
  path_end.time = place.time;
  path_end.mode = place.mode;
  sink.end_path(path_end);
  return true;
}

}  // namespace tailtrace::pt
