// FastFlow: the fast path of the flow decoder. It takes TNT, TIP, CYC, MTC and PAD packets, and
// TIP.PGD with the TIP.PGE right behind it, through memoised rows (row.h), and stops in front of
// anything else, or where the code does not fit; the complete decoder (flow.h) goes on from there.
//
// What it writes is the compact path (compact_path.h): one word per TNT byte or TIP.
//
// Threading: one thread at a time. Its memory is bounded by the limits of Rows.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "decoder/pt/compact_path.h"
#include "decoder/pt/flow.h"
#include "decoder/pt/node.h"
#include "decoder/pt/row.h"

namespace tailtrace::pt {

// The return addresses of return compression, as states. More than the processor's 64 may be held:
// those below are never returned to by compressed returns.
class KeyStack {
 public:
  static constexpr std::size_t kCapacity = 1u << 14;
  static constexpr std::size_t kRoom = 8192;  // what a block of the fast path may push

  KeyStack() : entries_(kCapacity) {}
  void clear() { top_ = 1; }
  std::size_t size() const { return top_ - 1; }
  void push(StateKey key) {
    if (top_ + 1 >= kCapacity) settle();
    entries_[top_++] = key;
  }
  StateKey pop() { return top_ == 1 ? 0 : entries_[--top_]; }

  // The fast path works on the array itself: entry 0 is no state and stays.
  StateKey* data() { return entries_.data(); }
  std::size_t top() const { return top_; }
  void set_top(std::size_t top) { top_ = top; }
  // Makes room again by forgetting what lies deeper than the processor's stack.
  void settle();

 private:
  std::vector<StateKey> entries_;
  std::size_t top_ = 1;
};

struct PathTotals {
  std::uint64_t insns = 0, branches = 0, records = 0;
};

// Where a stretch of the fast path begins.
struct PathStart {
  Address at;         // control
  PacketTime first;   // of its first packet, unless timing packets come before that
  PacketTime before;  // of the last packet that was used
};

// Where it ends.
struct PathEnd {
  Address at;
  PathTotals totals;
  PacketTime time;  // of the last packet that was used
  CodeMode mode = CodeMode::k64;

  RunState state() const { return {mode, false, time.exact, time.ticks}; }
};

// Takes compact paths beside what a Sink takes.
class PathSink : public Sink {
 public:
  // Whether a TIP.PGD and the TIP.PGE behind it may be of a path, and not events.
  virtual bool takes_pauses() const { return true; }
  // Words and marks are appended to the result; words refer to `book`.
  virtual CompactPath& begin_path(const PathStart& start,
                                  const std::shared_ptr<const EffectBook>& book) = 0;
  virtual void end_path(const PathEnd& end) = 0;
};

class FastFlow {
 public:
  FastFlow(const CodeImage& code, const DecoderConfig& config);

  // Where the flow stands between two packets.
  struct Place {
    std::size_t offset = 0;  // of the next packet
    std::uint64_t last_ip = 0;
    std::uint64_t ip = 0;
    CodeMode mode = CodeMode::k64;
    std::uint64_t outcomes = 0;  // of TNT packets before it that are still to be used
    unsigned outcome_count = 0;
    std::uint64_t insns = 0;  // executed on the way, or since tracing was switched on
    bool enabled = false;     // it was switched off and on
    bool fresh_time = false;  // the next packet has a time of its own
    PacketTime time;          // of the last packet that was used
    // Stop behind the timing packet that reaches this.
    std::uint64_t stop_time = ~0ull;
  };

  // Goes on as far as it can, but not to `end`. False: it could do nothing.
  bool run(ByteSpan trace, std::size_t end, Place& place, Clock& clock, PathSink& sink);

  // Whether the flow had better go on without it for now: what it remembers does not come again.
  // Asked once a branch.
  bool rests() { return rest_branches_ != 0 && rest_branches_-- != 0; }

  // What a call on the complete path leaves behind, and a return takes.
  void push_return(std::uint64_t ip, CodeMode mode) {
    if (rows_.full()) drop();
    stack_.push(rows_.key_of(ip, mode));
  }
  bool pop_return(std::uint64_t& ip);
  void clear_returns() { stack_.clear(); }
  const Rows& rows() const { return rows_; }
  // What it reads code with. It remembers much, so a walker for a short segment has none of its
  // own.
  CodeReader& reader(CodeMode mode) { return filler_.reader(mode); }

  // From here on the code of this epoch holds.
  void set_epoch(Epoch epoch);

 private:
  struct Registers;
  struct Loop;
  bool run_block(Registers& r);
  template <class... Symbol>
  std::uint64_t find_or_fill(StateKey state, Symbol... symbol);
  void make_room(StateKey& state);
  void add_up(std::span<const std::uint32_t> words, const std::uint32_t* on_at, PathTotals& totals,
              Place& place) const;
  void drop();
  void judge_rows();

  // Rows that were used less often than this on average cost more than they saved.
  static constexpr std::uint64_t kWorthwhileUses = 4;
  static constexpr std::uint64_t kFirstRest_branches = 1u << 14, kLongestRest_branches = 1u << 20;
  // Rows that are filled in before it is asked whether they pay; fewer after they did not.
  static constexpr std::uint64_t kLongProbe_fills = 1u << 14, kShortProbe_fills = 1u << 11;

  const DecoderConfig& config_;
  Rows rows_;
  RowFiller filler_;
  KeyStack stack_;
  Epoch epoch_;
  std::uint64_t uses_ = 0, fills_ = 0;  // since the rows were judged
  std::uint64_t probe_fills_ = kLongProbe_fills;
  std::uint64_t rest_branches_ = 0, next_rest_branches_ = kFirstRest_branches;
};

}  // namespace tailtrace::pt
