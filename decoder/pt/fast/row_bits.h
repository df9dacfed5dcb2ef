// What a row of the fast path is, and what it is found by. FLOW.md draws it.
//
// Threading: rows are published whole; looking at them takes no lock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "decoder/code/instruction.h"
#include "decoder/pt/fast/effect_book.h"

namespace tailtrace::pt {

// Names a state by where its outcome rows lie: the first slot of its window. 23 bits; 0 is none.
using StateKey = std::uint32_t;

// The fields that rows of both kinds have: whether they go on at the newest return address, next
// state, effect, outcomes left over, whether these have to wait for a TIP, and how many return
// addresses are pushed. The low bits tell the symbol.
struct RowBits {
  static constexpr std::uint64_t kPops = 1ull << 63;  // the sign: asked first, and of each row
  static constexpr unsigned kNextShift = 40, kEffectShift = 20, kLeftShift = 13;
  static constexpr std::uint64_t kDeferred = 1u << 12;
  static constexpr unsigned kTagBits = 10;
  static constexpr unsigned kPushesShift = kTagBits;  // two bits
  static constexpr std::uint64_t kTagMask = (1u << kTagBits) - 1;
  static constexpr std::uint64_t kPlainMask =
      kPops | (((1u << kEffectShift) - 1) & ~(3u << kPushesShift));
  static constexpr StateKey kMaxNext = (1u << 23) - 1;
  static constexpr std::uint64_t kNextMask = std::uint64_t{kMaxNext} << kNextShift;
  static constexpr std::uint32_t kEffectMask = (1u << 20) - 1;
  static_assert(EffectBook::kMaxEffects <= kEffectMask + 1);

  // Of a row that does not pop; of others 0.
  static StateKey next(std::uint64_t row) {
    return static_cast<StateKey>(row >> kNextShift) & kMaxNext;
  }
  static std::uint64_t with_next(std::uint64_t row, StateKey next) {
    return (row & ~kNextMask) | std::uint64_t{next} << kNextShift;
  }
  static std::uint32_t effect(std::uint64_t row) {
    return static_cast<std::uint32_t>(row >> kEffectShift) & kEffectMask;
  }
  // As a TNT byte; 0 is none.
  static std::uint8_t left(std::uint64_t row) {
    return static_cast<std::uint8_t>((row >> kLeftShift & 0x7f) << 1);
  }
  static std::size_t pushes(std::uint64_t row) { return row >> kPushesShift & 3; }
  static bool pops(std::uint64_t row) { return (row & kPops) != 0; }
  // The symbol's row, which uses all of it and does not pop: one question for all.
  static bool is_plain(std::uint64_t row, std::uint8_t symbol) {
    return (row & kPlainMask) == symbol;
  }
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
  int growth = 0;         // of the stack of return addresses; -1 goes on at the newest one
  bool deferred = false;

  std::uint64_t pack() const {
    return (growth < 0 ? RowBits::kPops : std::uint64_t{next} << RowBits::kNextShift) |
           std::uint64_t{effect} << RowBits::kEffectShift |
           std::uint64_t{left} >> 1 << RowBits::kLeftShift | (deferred ? RowBits::kDeferred : 0) |
           static_cast<std::uint64_t>(std::max(growth, 0)) << RowBits::kPushesShift;
  }
};

constexpr std::uint64_t kHashFactor = 0x9e3779b97f4a7c15ull;

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

// In the place of a state's key, and like none.
constexpr StateKey mode_key(CodeMode mode) { return static_cast<StateKey>(mode); }

// A row of outcomes that does not lie in its state's window.
struct OutcomeKey {
  StateKey state = 0;
  std::uint8_t symbol = 0;

  std::uint64_t bits() const { return std::uint64_t{state} << 8 | symbol; }
  std::uint64_t tag() const { return symbol; }
  std::uint32_t hash() const { return static_cast<std::uint32_t>(bits() * kHashFactor >> 32); }
  static OutcomeKey from(std::uint64_t bits, std::uint64_t tag) {
    return {static_cast<StateKey>(bits >> 8), static_cast<std::uint8_t>(tag)};
  }
};

// What an IP packet makes of a state: 48 bits of the address, the kind and most of the state; the
// state's other bits are the tag.
struct TargetKey {
  StateKey state = 0;  // or the mode's
  std::uint64_t ip = 0;
  IpKind kind = IpKind::kTarget;

  static constexpr std::uint64_t sign_extended(std::uint64_t ip) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(ip << kIpShift) >> kIpShift);
  }
  // Whether the 48 bits are all of it.
  static constexpr bool can_hold(std::uint64_t ip) { return sign_extended(ip) == ip; }
  std::uint64_t bits() const {
    return ip << kIpShift | static_cast<std::uint64_t>(kind) << kKindShift |
           state >> RowBits::kTagBits;
  }
  std::uint64_t tag() const { return state & RowBits::kTagMask; }
  std::uint32_t hash() const {
    return static_cast<std::uint32_t>(bits() * kHashFactor >> 32 ^ tag());
  }
  static TargetKey from(std::uint64_t bits, std::uint64_t tag) {
    constexpr std::uint64_t kStateMask = (1u << kKindShift) - 1;
    return {static_cast<StateKey>((bits & kStateMask) << RowBits::kTagBits | tag),
            sign_extended(bits >> kIpShift), static_cast<IpKind>(bits >> kKindShift & 3)};
  }

 private:
  static constexpr unsigned kIpShift = 16, kKindShift = 14;
};

}  // namespace tailtrace::pt
