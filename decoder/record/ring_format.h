// The layout of a ring file: a header page, then a power-of-two number of BranchRecords that are
// overwritten for ever. RING.md beside this file draws it and says how to read it safely while it
// is written.
//
// This header is shared by writers that live inside foreign processes; it needs no library.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "decoder/record/branch_record.h"

namespace tailtrace {

constexpr char kRingMagic[8] = {'T', 'T', 'R', 'I', 'N', 'G', '\n', '\0'};
constexpr std::uint32_t kRingVersion = 1;
constexpr std::size_t kRingHeaderSize_bytes = 4096;
constexpr std::uint64_t kRingMinRecords = 64;
constexpr std::uint64_t kRingMaxRecords = 1ull << 32;

enum class RingState : std::uint32_t {
  kEmpty = 0,    // made, nothing executed yet
  kRunning = 1,  // written to; also what a killed process leaves behind
  kThreadExited = 2,
  kProcessExited = 3,
  kReplaced = 4,  // the process executed another program, which is not recorded
  kFollowed = 5,  // the process executed another program, which is recorded elsewhere
};

enum class RingClock : std::uint32_t { kNone = 0, kTsc = 1 };

// A straight piece of code as the recorder met it, and what a record that leaves it looks like.
struct RingBlock {
  std::uint64_t begin;  // first instruction
  std::uint64_t next;   // where it falls through to; kNoFallThrough when it never does
  std::uint64_t last;   // last instruction
  std::uint64_t tail;   // BranchRecord bytes 24..31: instructions of the block, kind, flags, extra
};
static_assert(sizeof(RingBlock) == 32);
constexpr std::uint64_t kNoFallThrough = ~0ull;

struct RingHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t header_size_bytes;
  std::uint32_t record_size_bytes;
  std::uint32_t slot;      // number of the thread among those of its process
  std::uint64_t capacity;  // records, a power of two
  std::int32_t pid;
  std::atomic<std::int32_t> tid;  // 0 until known
  std::atomic<RingState> state;
  RingClock clock;
  std::uint64_t first_position;  // records of an ancestor before this number were copied at a fork
  std::uint8_t reserved0[128 - 56];

  // Written at every block; one cache line.
  std::atomic<std::uint64_t> head_bytes;  // bytes ever written: 32 x the next record's position
  std::atomic<std::uint64_t> run_insns;   // executed since the last record, before the open block
  std::atomic<std::uint64_t> open_block;  // writer's address of a RingBlock; 0: `own_block`
  std::uint64_t time;                     // copied into each record
  std::uint64_t mask_bytes;               // capacity x 32 - 1
  std::uint8_t reserved1[192 - 168];

  // Open blocks that are in no table: all of them for writers that keep none (open_block 0), and
  // such as a recorder makes up for itself. Two, so that one can be written while the other is
  // open.
  RingBlock own_block;
  RingBlock spare_block;
  std::uint64_t address;             // of this header in the writer's address space; 0: no table
  std::atomic<std::uint32_t> epoch;  // of the process's code, as far as this thread has seen it
  std::uint32_t reserved2;
  // The open block's first instruction, when the thread is made to wait before it; or 0.
  std::atomic<std::uint64_t> held_at;
  // `open_block`, `head_bytes` and `run_insns` as they were when the thread last came to a system
  // call: as long as they are, it has executed its open block whole.
  std::atomic<std::uint64_t> called_block, called_head_bytes, called_run_insns;
  std::atomic<std::uint32_t> ended_by;  // the signal that came here and ended the program; or 0
};
static_assert(sizeof(RingHeader) <= kRingHeaderSize_bytes);
static_assert(offsetof(RingHeader, capacity) == 24);
static_assert(offsetof(RingHeader, tid) == 36);
static_assert(offsetof(RingHeader, first_position) == 48);
static_assert(offsetof(RingHeader, head_bytes) == 128);
static_assert(offsetof(RingHeader, own_block) == 192);
static_assert(offsetof(RingHeader, spare_block) == 224);
static_assert(offsetof(RingHeader, address) == 256);
static_assert(offsetof(RingHeader, epoch) == 264);
static_assert(offsetof(RingHeader, held_at) == 272);
static_assert(offsetof(RingHeader, called_block) == 280);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// Fills in a fresh header; everything else of it is zero.
// REQUIRES: zeroed memory; a capacity that check_ring_capacity accepts.
inline void init_ring_header(RingHeader& header, ThreadId thread, std::uint32_t slot,
                             std::uint64_t capacity) {
  header.version = kRingVersion;
  header.header_size_bytes = kRingHeaderSize_bytes;
  header.record_size_bytes = sizeof(BranchRecord);
  header.slot = slot;
  header.capacity = capacity;
  header.pid = thread.pid;
  header.tid.store(thread.tid, std::memory_order_relaxed);
  header.mask_bytes = capacity * sizeof(BranchRecord) - 1;
  for (std::size_t i = 0; i < sizeof kRingMagic; ++i) header.magic[i] = kRingMagic[i];
}

}  // namespace tailtrace
