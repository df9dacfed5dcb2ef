// What goes into and comes out of the loop of the fast path (fast_flow.h), a block of words at a
// time.
//
// Threading: as FastFlow.
#pragma once

#include "decoder/pt/fast/fast_flow.h"

namespace tailtrace::pt {

// Words of a block, and those that its last packet may add: a long TNT has 47 outcomes, and up to
// 32 rows may be needed to reach the next branch.
constexpr std::size_t kBlockWords = 1024;
constexpr std::size_t kPacketWords = 47 * 32;
static_assert(kBlockWords + kPacketWords <= Counts::kMaxSum);
static_assert(4 * (kBlockWords + kPacketWords) <= KeyStack::kCapacity - 64);
// One before each word, and one behind the last.
constexpr std::size_t kBlockMarks = kBlockWords + kPacketWords + 1;
// Of a stretch: what a mark can number.
constexpr std::size_t kMaxStretchWords = 1u << 30;

// What the loop keeps in registers.
struct FastFlow::Registers {
  const std::uint8_t* at;   // the next packet
  const std::uint8_t* end;  // do not read a packet here or behind
  std::uint64_t last_ip;    // a TargetKey can hold it
  StateKey state;
  std::uint8_t left = 0;      // outcomes that could not be used: stop
  std::uint8_t deferred = 0;  // outcomes that wait for a TIP
  std::uint64_t rest = 0;     // outcomes behind `left` and `deferred`
  unsigned rest_count = 0;
  StateKey* stack;
  std::size_t top;
  std::uint32_t* out;
  std::uint32_t* block;                    // `out` at the begin of the block
  std::uint32_t block_word;                // how many words of the stretch come before
  TimeMark* mark;                          // behind the newest one
  std::uint64_t start_ticks;               // what marks count from
  std::uint64_t counts;                    // of the block, as Counts packs them
  bool enabled;                            // tracing was switched off and on in the block
  std::uint64_t counts_before_on;          // the part of them before it was switched on last
  const std::uint8_t* time_end = nullptr;  // of the last timing packets, and padding
  const std::uint8_t* cyc_end = nullptr;   // the same with a CYC among them
  PacketTime used;                         // of the last packet before `time_end`, and its time
  Clock* clock;
  std::uint64_t stop_time;
  StateKey mode;
  bool skd007;
  bool pauses;
};

}  // namespace tailtrace::pt
