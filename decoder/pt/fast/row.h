// Rows: the memory of the fast path. A state is an address at which control stands; a packet is a
// symbol; a row says what the packet makes of the state. All of it is filled in on demand by
// running the code once, and dropped when it grows beyond its limits.
//
// A row is eight bytes, and the rows of states that were met one after the other lie next to each
// other, so that those of a large program stay in the processor's second cache; what the next state
// does not depend on is kept beside them. FLOW.md draws them.
//
// Threading: one thread at a time changes rows, but each may add effects. Others may look at
// outcomes() and beside(), and find rows and states meanwhile, but not while rows are moved or
// dropped (row_pool.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "decoder/code/instruction.h"
#include "decoder/pt/fast/address_table.h"
#include "decoder/pt/fast/effect_book.h"
#include "decoder/pt/fast/large_array.h"
#include "decoder/pt/fast/row_bits.h"
#include "decoder/pt/fast/row_table.h"
#include "decoder/pt/fast/window_layout.h"
#include "decoder/record/branch_record.h"

namespace tailtrace::pt {

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

// The return addresses that a row pushes, the newest last.
struct Pushes {
  StateKey keys[2] = {};
};

// What the loop needs of a row beside the row.
struct Beside {
  Pushes pushes;
  std::uint64_t counts = 0;  // as Counts packs them
};
static_assert(sizeof(Beside) == 16);

class Rows {
 public:
  Rows();

  // Limits. When one is reached is_full() says so, and the owner drops everything.
  static constexpr std::size_t kMaxStates = 1u << 19;
  static constexpr std::size_t kMaxOutcomes = 1u << 19;
  static constexpr std::size_t kMaxTargets = 1u << 17;
  bool is_full() const;
  // Whether rows may be put, and states named.
  bool takes_more() const;
  void drop();

  // What one flow names and adds next: each has numbers and places of its own, so that one does not
  // write next to what another writes.
  struct Part {
    EffectBook::Part effects;
    std::uint32_t state = 0, states_end = 0;  // numbers
  };
  // States that one row may name: where it leads, and where its calls return to.
  static constexpr std::size_t kRowStates = 1 + std::size(Pushes{}.keys);
  static bool has_room(const Part& part, std::size_t record_count) {
    return part.states_end - part.state >= kRowStates &&
           EffectBook::has_room(part.effects, record_count);
  }
  // For any row. REQUIRES: takes_more().
  void extend(Part& part);

  struct State {
    std::uint64_t ip = 0;
    CodeMode mode = CodeMode::k64;
    // Tracing is off: the branch at `ip` led to where it is not on, and this says where.
    bool off = false;
    RecordKind off_kind = RecordKind::kNone;
    std::uint64_t off_next = 0;     // behind that branch
    std::uint64_t off_told_to = 0;  // 0 unknown
  };
  // 0 when it has no name yet.
  StateKey find_key(std::uint64_t ip, CodeMode mode) const;
  // REQUIRES: takes_more(); room in the part.
  StateKey key_of(Part& part, std::uint64_t ip, CodeMode mode);
  // A new one each time. REQUIRES: room in the part.
  StateKey add_state(Part& part, const State& state);
  const State& state(StateKey key) const { return states_[owners_[key]]; }

  // Where the fast path looks. A row of another state may lie there, but then of another symbol: no
  // two windows begin at the same slot.
  static std::size_t slot_of(StateKey state, std::uint8_t bits) {
    return state + window_offset(bits);
  }
  const std::uint64_t* outcomes() const { return outcomes_.data(); }
  RowTable<TargetKey>::View targets() const { return targets_.view(); }
  const Beside* beside() const { return beside_.data(); }  // by effect

  // The row, wherever it is; 0 when it is not filled in.
  std::uint64_t find(StateKey state, std::uint8_t bits) const;
  std::uint64_t find(StateKey state, std::uint64_t ip, IpKind kind) const {
    return targets_.find({state, ip, kind});
  }
  // REQUIRES: takes_more(); the row is not there.
  void put(StateKey state, std::uint8_t bits, std::uint64_t row);
  void put(StateKey state, std::uint64_t ip, IpKind kind, std::uint64_t row);
  // `counts` are of Counts; branches are counted whether they have records or not. REQUIRES: room
  // in the part.
  std::uint32_t add_effect(EffectBook::Part& part, const Effect& effect,
                           std::span<const BranchRecord> records, std::uint64_t counts);
  void put_pushes(std::uint32_t effect, const Pushes& pushes) { beside_[effect].pushes = pushes; }

  // So many outcomes were looked for in vain where their rows should lie.
  void note_detours(std::size_t count) { detours_ += count; }
  // Whether make_room() has something to do.
  bool is_crowded() const;
  // Makes tables larger that are half full; when there were too many detours, gives each state a
  // window in which its rows have room. Keys change then: those in `kept` too.
  void make_room(std::span<const std::span<StateKey>> kept);

  std::shared_ptr<const EffectBook> shared_book() const { return book_; }

 private:
  using StateNumber = std::uint32_t;  // index into states_
  static constexpr std::size_t kMaxSlots = 1u << 21;
  static_assert(kMaxSlots <= RowBits::kMaxNext);
  // Keys below are none, or the modes'.
  static constexpr std::size_t kFirstWindow = 8;
  // From a new state's window to the next one's: about as many slots as states have rows.
  static constexpr std::size_t kNewWindow = 3;
  static constexpr std::size_t kLeastTargets = 1u << 12, kLeastAside = 1u << 9;
  static constexpr std::size_t kLeastStates = 1u << 13;  // in a table
  static constexpr std::size_t kPartStates = 64;
  static constexpr std::size_t kFirstDetours = 1024;
  static constexpr std::size_t kManyEffects = 1u << 13;

  // All rows, with their tags, and which is the first of each state.
  struct OutcomesOfStates {
    std::vector<std::uint64_t> rows;
    std::vector<std::uint32_t> first;
    std::span<const std::uint64_t> of(StateNumber state) const {
      return {rows.data() + first[state], rows.data() + first[state + 1]};
    }
  };
  OutcomesOfStates take_outcomes();
  template <class Visit>
  void for_each_outcome(Visit visit) const;
  bool is_scattered() const { return detours_ > tolerated_detours_ || aside_.is_half_full(); }
  void place(StateKey state, std::uint64_t row);  // with its tag
  // All that the windows hold is put there anew behind it.
  void take_large_pages();
  void open_windows(std::span<const std::span<StateKey>> kept);
  void lay_out(const OutcomesOfStates& outcomes);

  BoundedArray<State> states_;
  BoundedArray<StateKey> keys_;  // by state
  // Of states, by CodeMode.
  AddressTable numbers_[3] = {AddressTable(), AddressTable(), AddressTable(kLeastStates)};
  LargeArray<std::uint64_t> outcomes_;
  LargeArray<StateNumber> owners_;  // of the window that begins at a slot
  std::size_t next_window_ = kFirstWindow;
  std::size_t outcome_count_ = 0;
  RowTable<OutcomeKey> aside_;  // the rows whose slot another has
  std::size_t detours_ = 0, tolerated_detours_ = kFirstDetours;
  RowTable<TargetKey> targets_;
  LargeArray<Beside> beside_;     // by effect
  bool has_large_pages_ = false;  // where the loop looks
  std::shared_ptr<EffectBook> book_;
};

}  // namespace tailtrace::pt
