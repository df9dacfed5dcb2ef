// EffectBook: what rows (row.h) did, in a form from which records are made.
//
// An effect is sixteen bytes, and twenty-four for each of its records right behind them: expanding
// a path means waiting for memory, so one place tells all and little of it.
//
// Threading: each thread adds to a part of its own; one at a time extends parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "decoder/pt/fast/large_array.h"
#include "decoder/record/branch_record.h"

namespace tailtrace::pt {

// A record of an effect: all but the time, which is its effect's. One whose time may be exact is
// marked as such.
struct TimelessRecord {
  Address from, to;
  std::uint32_t insns = 0;
  RecordKind kind = RecordKind::kNone;
  std::uint8_t flags = 0;
  std::uint16_t extra = 0;
};
static_assert(sizeof(TimelessRecord) == 24);

// What a row did.
struct Effect {
  std::uint64_t start = 0;       // address of its first instruction
  std::uint16_t tail_insns = 0;  // since its last record, or all
  // What its records take as BranchRecords, and how far behind their begin the next effect's start
  // is written: into the last one when that leads there, else where the next one will be, which
  // is put over it.
  std::uint16_t made_bytes = 0, next_start_bytes = 0;
  std::uint16_t lead_count : 9 = 0;  // records of branches before the first that the packet told
  std::uint16_t decides : 1 = 0;     // the packet told any
  std::uint16_t returns : 1 = 0;     // its last record leads to where the next effect starts

  static constexpr std::size_t kMaxRecords = (1u << 9) - 1;

  static Effect at(const std::uint8_t* place) {
    Effect effect;
    std::memcpy(&effect, place, sizeof effect);
    return effect;
  }
  // Of a record of the effect that lies at `place`.
  static std::uint8_t flags_of(const std::uint8_t* place, std::size_t record) {
    return place[sizeof(Effect) + record * sizeof(TimelessRecord) +
                 offsetof(TimelessRecord, flags)];
  }
};
static_assert(sizeof(Effect) == 16);

class EffectBook {
 public:
  // So many effects, and begun before so many bytes.
  static constexpr std::size_t kMaxEffects = 1u << 20, kMax_bytes = 1u << 27;
  // What may be read behind an effect's last record.
  static constexpr std::size_t kReadAhead_bytes = 128;

  // Numbers and bytes for the effects of one thread.
  struct Part {
    std::uint32_t number = 0, end = 0;
    std::size_t place = 0, end_place = 0;
  };
  static constexpr std::uint32_t kPartEffects = 64;
  static bool has_room(const Part& part, std::size_t record_count) {
    return part.number != part.end &&
           part.end_place - part.place >= sizeof(Effect) + record_count * sizeof(TimelessRecord);
  }
  // For any effect. REQUIRES: kPartEffects numbers are left.
  void extend(Part& part);

  // Returns its number. `records`, which tell the effect's bytes, have no time; where the last one
  // of an effect that `returns` leads to is not looked at. REQUIRES: no more than kMaxRecords of
  // them; room in the part.
  std::uint32_t add(Part& part, Effect effect, std::span<const BranchRecord> records);

  // Of all parts.
  std::size_t size() const { return size_; }
  std::size_t size_bytes() const { return size_bytes_; }

  Effect effect(std::uint32_t number) const { return Effect::at(bytes() + places_[number]); }
  // Whether its records are all of near branches and led somewhere.
  bool is_near(std::uint32_t number) const { return near_[number] != 0; }

  // An effect lies at the place of its number, its records behind it.
  const std::uint8_t* bytes() const { return bytes_.data(); }
  const std::uint32_t* places() const { return places_.data(); }

 private:
  static constexpr std::size_t kMaxEffect_bytes =
      sizeof(Effect) + Effect::kMaxRecords * sizeof(TimelessRecord);

  LargeArray<std::uint32_t> places_{kMaxEffects, PageSize::kSmallFirst};  // in bytes_, by number
  LargeArray<std::uint8_t> near_{kMaxEffects, PageSize::kSmallFirst};     // by number
  LargeArray<std::uint8_t> bytes_{kMax_bytes + kMaxEffect_bytes + kReadAhead_bytes,
                                  PageSize::kSmallFirst};
  std::size_t size_ = 0, size_bytes_ = 0;
};

// A word of a path: an effect, and whether it is the first of its packet.
constexpr std::uint32_t kPathFirst = 1u << 31;
constexpr std::uint32_t kPathEffect = kPathFirst - 1;

// Whether a record tells of no more than the instructions that were executed up to it.
inline bool is_near_branch(const BranchRecord& record) {
  return record.kind >= RecordKind::kConditional && record.kind <= RecordKind::kIndirectCall &&
         !record.is_async() && record.insns != 0;
}

}  // namespace tailtrace::pt
