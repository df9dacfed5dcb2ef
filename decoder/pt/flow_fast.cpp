#include "decoder/pt/flow_fast.h"

#include <algorithm>
#include <bit>

#include "decoder/pt/fast_loop.h"

namespace tailtrace::pt {
namespace {

// The longest packet of the fast path is a TIP of 9 bytes, read as 1 + 8.
constexpr std::size_t kReadAhead_bytes = 16;

}  // namespace

void KeyStack::settle() {
  std::size_t kept = std::min(top_ - 1, ReturnStack::kCapacity);
  std::move(entries_.begin() + static_cast<std::ptrdiff_t>(top_ - kept),
            entries_.begin() + static_cast<std::ptrdiff_t>(top_), entries_.begin() + 1);
  top_ = kept + 1;
}

FastFlow::FastFlow(const CodeImage& code, const DecoderConfig& config)
    : config_(config), filler_(code, rows_) {
  filler_.expect_skl014(config.errata.skl014);
}

bool FastFlow::pop_return(std::uint64_t& ip) {
  StateKey key = stack_.pop();
  if (key != 0) ip = rows_.state(key).ip;
  return key != 0;
}

void FastFlow::set_epoch(Epoch epoch) {
  if (epoch == epoch_) return;
  epoch_ = epoch;
  drop();
  filler_.set_epoch(epoch);
}

// Forgets all rows; the stack goes over into the new ones.
void FastFlow::drop() {
  stack_.settle();
  std::vector<Rows::State> returns;
  for (std::size_t i = 1; i < stack_.top(); ++i) returns.push_back(rows_.state(stack_.data()[i]));
  rows_.drop();
  filler_.drop();
  stack_.clear();
  for (const Rows::State& state : returns) stack_.push(rows_.key_of(state.ip, state.mode));
}

// When the newest rows did not pay, the next ones will not at once either.
void FastFlow::judge_rows() {
  bool worthwhile = uses_ >= kWorthwhileUses * fills_;
  if (worthwhile) {
    next_rest_branches_ = kFirstRest_branches;
    probe_fills_ = kLongProbe_fills;
  } else {
    rest_branches_ = next_rest_branches_;
    next_rest_branches_ = std::min(2 * next_rest_branches_, kLongestRest_branches);
    probe_fills_ = kShortProbe_fills;
  }
  uses_ = fills_ = 0;
}

// For what a block pushes, and for rows that have no place of their own. Keys change.
void FastFlow::make_room(StateKey& state) {
  if (stack_.top() + 4 * (kBlockWords + kPacketWords) > KeyStack::kCapacity) stack_.settle();
  if (!rows_.is_crowded()) return;
  stack_.push(state);
  rows_.make_room({stack_.data(), stack_.top()});
  state = stack_.pop();
}

// What the effects of a block did; `on_at` is its first word since tracing was switched on, if it
// was.
void FastFlow::add_up(std::span<const std::uint32_t> words, const std::uint32_t* on_at,
                      PathTotals& totals, Place& place) const {
  std::uint64_t sum = rows_.count(words);
  totals.insns += sum & Counts::kInsnMask;
  totals.branches += sum >> Counts::kBranchShift & Counts::kBranchMask;
  totals.records += sum >> Counts::kRecordShift;
  if (on_at != nullptr) {
    place.enabled = true;
    place.insns = 0;
    sum = rows_.count({on_at, words.data() + words.size()});
  }
  place.insns += sum & Counts::kInsnMask;
}

bool FastFlow::run(ByteSpan trace, std::size_t end, Place& place, Clock& clock, PathSink& sink) {
  if (end < kReadAhead_bytes || place.offset >= end - kReadAhead_bytes) return false;
  std::uint8_t first = trace[place.offset];
  bool common = place.outcome_count != 0 || ((first & 1) == 0 && first != 0x02) ||
                (first & 0x1f) == 0x0d || (first & 0x1f) == 0x01 || (first & 3) == 3 ||
                first == 0x59;
  if (!common) return false;
  if (rows_.full()) {
    drop();
    judge_rows();
    if (rests()) return false;
  }

  const PathStart start{{place.ip}, {clock.known_ticks(), place.fresh_time}, place.time};
  CompactPath& path = sink.begin_path(start, rows_.shared_book());
  const std::size_t first_word = path.words.size();
  Registers r{};
  r.at = trace.data() + place.offset;
  r.end = trace.data() + end - kReadAhead_bytes;
  r.last_ip = place.last_ip;
  r.state = rows_.key_of(place.ip, place.mode);
  r.stack = stack_.data();
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
    make_room(r.state);
    r.top = stack_.top();
    r.out = r.block = path.words.room(kBlockWords + kPacketWords);
    r.block_word = static_cast<std::uint32_t>(path.words.size() - first_word);
    TimeMark* const marks = r.mark = path.marks.room(kBlockMarks);
    more = run_block(r);
    stack_.set_top(r.top);
    path.words.grow(static_cast<std::size_t>(r.out - r.block));
    path.marks.grow(static_cast<std::size_t>(r.mark - marks));
    uses_ += static_cast<std::uint64_t>(r.out - r.block);
    add_up({r.block, r.out}, r.on_at, totals, place);
  }
  place.offset = static_cast<std::size_t>(r.at - trace.data());
  place.fresh_time = r.cyc_end == r.at;
  // Timing packets at the end are of no packet that was used.
  if (r.time_end != r.at) r.used.ticks = not_before(r.used.ticks, clock.known_ticks());
  place.time = r.used;
  place.last_ip = r.last_ip;
  place.ip = rows_.state(r.state).ip;
  std::uint8_t left = r.left != 0 ? r.left : r.deferred;
  place.outcome_count = left == 0 ? 0 : static_cast<unsigned>(std::bit_width(left)) - 2;
  place.outcomes = left >> 1 & ((1u << place.outcome_count) - 1);
  place.outcomes = place.outcomes << r.rest_count | (r.rest & ((1ull << r.rest_count) - 1));
  place.outcome_count += r.rest_count;
  path_end.at = {place.ip};
  path_end.time = place.time;
  path_end.mode = place.mode;
  sink.end_path(path_end);
  return true;
}

}  // namespace tailtrace::pt
