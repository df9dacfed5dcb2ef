// FastFlow: the fast path of the flow decoder. It takes TNT, TIP, CYC, MTC and PAD packets, and
// TIP.PGD with the TIP.PGE right behind it, through memoised rows (row.h), and stops in front of
// anything else, or where the code does not fit; the complete decoder (flow.h) goes on from there.
//
// What it writes is the compact path (compact_path.h): one word per TNT byte or TIP.
//
// Threading: one thread at a time; several may share rows. Its memory is bounded by the limits of
// Rows.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>

#include "decoder/pt/decoder.h"
#include "decoder/pt/fast/compact_path.h"
#include "decoder/pt/fast/node.h"
#include "decoder/pt/fast/row_pool.h"
#include "decoder/pt/timing.h"

namespace tailtrace::pt {

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
  // Its rows are its own as long as nobody else has `pool`, whose code is the same.
  FastFlow(const CodeImage& code, const DecoderConfig& config, std::shared_ptr<RowPool> pool);
  FastFlow(const CodeImage& code, const DecoderConfig& config)
      : FastFlow(code, config, std::make_shared<RowPool>(config.first_epoch)) {}
  ~FastFlow() { pool_->leave(member_); }
  FastFlow(const FastFlow&) = delete;

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
  void push_return(std::uint64_t ip, CodeMode mode);
  bool pop_return(std::uint64_t& ip);
  void clear_returns();
  // What it reads code with. It remembers much, so a walker for a short segment has none of its
  // own.
  CodeReader& reader(CodeMode mode) { return filler_.reader(mode); }

  // From here on the code of this epoch holds.
  void set_epoch(Epoch epoch);

 private:
  struct Registers;
  struct Loop;
  bool run_block(Registers& r);
  bool run_block_anywhere(Registers& r);
  bool run_block_bmi2(Registers& r);
  template <class... Symbol>
  std::uint64_t find_or_fill(StateKey state, Symbol... symbol);
  void make_room(StateKey& state, std::unique_lock<std::mutex>& at_work);
  static void add_up(const Registers& r, PathTotals& totals, Place& place);
  static void give_back(const Registers& r, Place& place);
  void begin_anew(std::unique_lock<std::mutex>& at_work);
  StateKey enter(std::uint64_t ip, CodeMode mode, std::unique_lock<std::mutex>& at_work);
  void judge_rows();

  // Rows that were used less often than this on average cost more than they saved. That is asked of
  // so many; of fewer, whether any are used again at all.
  static constexpr std::uint64_t kWorthwhileUses = 4;
  static constexpr std::uint64_t kProbe_fills = 1u << 14, kFirstLook_fills = 1u << 9;
  static constexpr std::uint64_t kFirstRest_branches = 1u << 14, kLongestRest_branches = 1u << 20;
  // The pool is told of so many detours at once: others use its lock.
  static constexpr std::size_t kToldAtOnce_detours = 64;

  const DecoderConfig& config_;
  std::shared_ptr<RowPool> pool_;
  RowPool::Member member_;
  RowFiller filler_;
  std::uint64_t uses_ = 0, fills_ = 0;  // since the rows were judged
  std::size_t detours_ = 0;             // that the pool was not told of
  std::uint64_t rest_branches_ = 0, next_rest_branches_ = kFirstRest_branches;
};

}  // namespace tailtrace::pt
