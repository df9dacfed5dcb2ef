// Rows: the memory of the fast path. A state is an address at which control stands; a packet is a
// symbol; a row says what the packet makes of the state. All of it is filled in on demand by
// running the code once, and dropped when it grows beyond its limits.
//
// A row is eight bytes, and the rows of states that were met one after the other lie next to each
// other, so that those of a large program stay in the processor's second cache; what the next state
// does not depend on is kept beside them. FLOW.md draws them.
//
// Threading: one thread at a time changes rows. Others may look at outcomes(), find targets and add
// up effects meanwhile, but not while rows are moved or dropped (row_pool.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "decoder/code/instruction.h"
#include "decoder/pt/address_table.h"
#include "decoder/pt/effect_book.h"
#include "decoder/pt/large_array.h"
#include "decoder/pt/window_layout.h"
#include "decoder/record/branch_record.h"

namespace tailtrace::pt {

// Names a state by where its outcome rows lie: the first slot of its window. 24 bits; 0 is none.
using StateKey = std::uint32_t;

// Instructions | branches << 24 | records << 44 of a row, to be added up in one go.
struct Counts {
  static constexpr unsigned kBranchShift = 24, kRecordShift = 44;
  static constexpr std::uint64_t kInsnMask = (1ull << 24) - 1, kBranchMask = (1ull << 20) - 1;
  // No row has more of any, so this many of them add up without a carry.
  static constexpr std::uint32_t kMaxInsns = 6000, kMaxBranches = 380;
  static constexpr std::uint32_t kMaxSum = 2700;
  static_assert(kMaxSum * kMaxInsns <= kInsnMask && kMaxSum * kMaxBranches <= kBranchMask);

  static std::uint64_t pack(std::uint64_t insns, std::uint64_t branches, std::uint64_t records) {
    return insns | branches << kBranchShift | records << kRecordShift;
  }
};

// The fields that rows of both kinds have: next state, effect, outcomes left over, whether these
// have to wait for a TIP, and growth of the stack of return addresses. The low bits tell the
// symbol.
struct RowBits {
  static constexpr unsigned kNextShift = 40, kEffectShift = 20, kLeftShift = 13;
  static constexpr std::uint64_t kDeferred = 1u << 12;
  static constexpr unsigned kGrowthShift = 10;  // growth + 1; 0 returns to the newest entry
  static constexpr std::uint64_t kTagMask = (1u << kGrowthShift) - 1;
  static constexpr std::uint64_t kPlainMask = (1u << kEffectShift) - 1;
  static constexpr std::uint64_t kNextMask = ~std::uint64_t{0} << kNextShift;
  static constexpr std::uint32_t kEffectMask = (1u << 20) - 1;
  static_assert(EffectBook::kMaxEffects <= kEffectMask + 1);

  static StateKey next(std::uint64_t row) { return static_cast<StateKey>(row >> kNextShift); }
  static std::uint32_t effect(std::uint64_t row) {
    return static_cast<std::uint32_t>(row >> kEffectShift) & kEffectMask;
  }
  // As a TNT byte; 0 is none.
  static std::uint8_t left(std::uint64_t row) {
    return static_cast<std::uint8_t>((row >> kLeftShift & 0x7f) << 1);
  }
  static std::ptrdiff_t growth(std::uint64_t row) {
    return static_cast<std::ptrdiff_t>(row >> kGrowthShift & 3) - 1;
  }
  // The symbol's row, which leaves nothing over and the stack alone: one question for all.
  static bool is_plain(std::uint64_t row, std::uint8_t symbol) {
    return (row & kPlainMask) == (symbol | 1u << kGrowthShift);
  }
  static bool pops(std::uint64_t row) { return (row >> kGrowthShift & 3) == 0; }
};

// A row is published whole: what it refers to is there for whoever sees it.
inline std::uint64_t load_row(const std::uint64_t& slot) {
  return __atomic_load_n(&slot, __ATOMIC_ACQUIRE);
}
inline void publish_row(std::uint64_t& slot, std::uint64_t row) {
  __atomic_store_n(&slot, row, __ATOMIC_RELEASE);
}

// What a transition is, before it is packed.
struct Transition {
  StateKey next = 0;
  std::uint32_t effect = 0;
  std::uint8_t left = 0;  // a TNT byte
  int growth = 0;
  bool deferred = false;

  std::uint64_t pack() const {
    return std::uint64_t{next} << RowBits::kNextShift |
           std::uint64_t{effect} << RowBits::kEffectShift |
           std::uint64_t{left} >> 1 << RowBits::kLeftShift | (deferred ? RowBits::kDeferred : 0) |
           static_cast<std::uint64_t>(growth + 1) << RowBits::kGrowthShift;
  }
};

// A TIP among the TNT bytes, none of which is like it: up to the branch that it tells the target
// of.
constexpr std::uint8_t kTipSymbol = 0x02;

// What an IP packet says.
enum class IpKind : std::uint8_t {
  kTarget,     // TIP: where it leads, whatever was before. It finds the mode in a state's place.
  kOff,        // TIP.PGD
  kOffSilent,  // TIP.PGD without an address: 0
  kOn,         // TIP.PGE, to a state that a TIP.PGD led to
};

// What an IP packet makes of a state: 48 bits of the address and 16 of the state; the row, with the
// state's other bits and the kind in its tag.
struct TargetRow {
  std::uint64_t key = 0;
  std::uint64_t row = 0;

  // Whether the 48 bits are all of it.
  static constexpr bool can_hold(std::uint64_t ip) { return sign_extended(ip) == ip; }
  static std::uint64_t key_of(StateKey state, std::uint64_t ip) {
    return (ip & 0xffffffffffffull) | std::uint64_t{state} << 48;
  }
  static std::uint64_t tag_of(StateKey state, IpKind kind) {
    return state >> 16 | static_cast<std::uint64_t>(kind) << 8;
  }
  // Read behind the row.
  std::uint64_t load_key() const { return __atomic_load_n(&key, __ATOMIC_RELAXED); }
  void publish(const TargetRow& other) {
    __atomic_store_n(&key, other.key, __ATOMIC_RELAXED);
    publish_row(row, other.row);
  }
  StateKey state() const { return static_cast<StateKey>(key >> 48 | (row & 0xff) << 16); }
  std::uint64_t ip() const { return sign_extended(key); }
  IpKind kind() const { return static_cast<IpKind>(row >> 8 & 3); }

 private:
  static constexpr std::uint64_t sign_extended(std::uint64_t ip) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(ip << 16) >> 16);
  }
};

// In the place of a state's key, and like none.
constexpr StateKey mode_key(CodeMode mode) { return static_cast<StateKey>(mode); }

// The return addresses that a row pushes, the newest last.
struct Pushes {
  StateKey keys[2] = {};
};

class Rows {
 public:
  Rows();

  // Limits. When one is reached is_full() says so, and the owner drops everything.
  static constexpr std::size_t kMaxStates = 1u << 19;
  static constexpr std::size_t kMaxOutcomes = 1u << 19;
  static constexpr std::size_t kMaxTargets = 1u << 17;
  bool is_full() const;
  // Whether rows may be put.
  bool takes_more() const { return !is_full() && target_count_ < targets_.size() / 8 * 7; }
  void drop();

  struct State {
    std::uint64_t ip = 0;
    CodeMode mode = CodeMode::k64;
    // Tracing is off: the branch at `ip` led to where it is not on, and this says where.
    bool off = false;
    RecordKind off_kind = RecordKind::kNone;
    std::uint64_t off_next = 0;     // behind that branch
    std::uint64_t off_told_to = 0;  // 0 unknown
  };
  // REQUIRES: not is_full().
  StateKey key_of(std::uint64_t ip, CodeMode mode);
  // A new one each time.
  StateKey add_state(const State& state);
  const State& state(StateKey key) const { return states_[owners_[key]]; }

  // Where the fast path looks. A row of another state may lie there, but then of another symbol: no
  // two windows begin at the same slot.
  static std::size_t slot_of(StateKey state, std::uint8_t bits) {
    return state + window_offset(bits);
  }
  static std::uint32_t hash(StateKey state, std::uint64_t ip, IpKind kind) {
    std::uint64_t mixed = (ip + static_cast<std::uint64_t>(kind)) * 0x9e3779b97f4a7c15ull;
    return state ^ static_cast<std::uint32_t>(mixed >> 32);
  }
  struct TargetView {
    const TargetRow* rows;
    std::uint32_t mask;
  };
  const std::uint64_t* outcomes() const { return outcomes_.data(); }
  TargetView targets() const {
    return {targets_.data(), static_cast<std::uint32_t>(targets_.size() - 1)};
  }
  const Pushes* pushes() const { return pushes_.data(); }
  // The Counts of the effects of these words, added up.
  std::uint64_t count(std::span<const std::uint32_t> words) const;

  // The row, wherever it is; 0 when it is not filled in. Looking for an outcome counts as a change.
  std::uint64_t find(StateKey state, std::uint8_t bits);
  std::uint64_t find(StateKey state, std::uint64_t ip, IpKind kind) const;
  // REQUIRES: takes_more(); the row is not there.
  void put(StateKey state, std::uint8_t bits, std::uint64_t row);
  void put(StateKey state, std::uint64_t ip, IpKind kind, std::uint64_t row);
  // `branches` of the effect, whether they have records or not.
  std::uint32_t add_effect(const Effect& effect, std::span<const BranchRecord> records,
                           std::uint32_t branches, const Pushes& pushes);

  // Whether too many rows have been looked for in vain where they should lie, or there are many
  // targets.
  bool is_crowded() const { return has_detours() || has_many_targets(); }
  // Gives each state a window in which its rows have room, and targets a larger table. Keys change:
  // those in `kept` too.
  void make_room(std::span<const std::span<StateKey>> kept);

  std::shared_ptr<const EffectBook> shared_book() const { return book_; }

 private:
  using StateNumber = std::uint32_t;  // index into states_
  static constexpr std::size_t kMaxSlots = 1u << 21;
  // Keys below are none, or the modes'.
  static constexpr std::size_t kFirstWindow = 8;
  // From a new state's window to the next one's: about as many slots as states have rows.
  static constexpr std::size_t kNewWindow = 3;
  static constexpr std::size_t kLeastTargets = 1u << 14;
  static constexpr std::size_t kFirstDetours = 1024;
  static constexpr std::size_t kManyEffects = 1u << 13;

  struct Symbol {  // of the outcome rows
    StateNumber state;
    StateNumber next;
    std::uint8_t bits;
    std::uint64_t row;
  };
  bool has_detours() const { return detours_ > tolerated_detours_; }
  bool has_many_targets() const { return target_count_ * 2 > targets_.size(); }
  void place(std::size_t index);  // of symbols_
  // All that the windows hold is put there anew behind it.
  void take_large_pages();
  void open_windows(std::span<const std::span<StateKey>> kept);
  void lay_out();
  std::uint64_t renamed(std::uint64_t row, StateNumber next) const;
  struct MovingTarget {
    StateNumber state;  // or the mode
    StateNumber next;
    IpKind kind;
    std::uint64_t ip;
    std::uint64_t row;  // without its tag
  };
  std::vector<MovingTarget> take_targets();
  void put_target(const TargetRow& row);
  void grow_targets();

  BoundedArray<State> states_;
  BoundedArray<StateKey> keys_;  // by state
  AddressTable numbers_[3];      // of states, by CodeMode
  LargeArray<std::uint64_t> outcomes_;
  LargeArray<StateNumber> owners_;  // of the window that begins at a slot
  std::size_t next_window_ = kFirstWindow;
  BoundedArray<Symbol> symbols_;
  std::size_t sorted_symbols_ = 0;  // by state, the first of them
  AddressTable displaced_;          // in symbols_: the rows whose slot another has
  std::size_t detours_ = 0, tolerated_detours_ = kFirstDetours;
  LargeArray<TargetRow> targets_;
  std::size_t target_count_ = 0;
  LargeArray<Pushes> pushes_;         // by effect
  LargeArray<std::uint64_t> counts_;  // by effect
  bool has_large_pages_ = false;      // where the loop looks
  std::shared_ptr<EffectBook> book_;
};

}  // namespace tailtrace::pt
