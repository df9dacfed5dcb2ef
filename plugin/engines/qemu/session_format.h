// The layout of a recording session's folder, as the plugin inside qemu writes it and the engine
// reads it. RING.md (decoder/record) draws the files.
//
// This header is shared with code that lives inside qemu's process; it needs no library.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "decoder/record/ring_format.h"

namespace tailtrace {

// What helps where a session's folder has no space left.
constexpr char kFreeSpace[] = "free some space there, or record in another folder";

// Names in the session folder.
constexpr char kRefusalName[] = "refusal";  // three lines: what, why, fix; the plugin gave up
constexpr char kStubName[] = "stub.";       // with the number N below: qemu's stub's socket
constexpr char kMissingName[] = "missing";  // a byte per process whose recording is not here
// Names in a process's folder, which is called PID.N: N counts the programs it has executed.
constexpr char kProcessName[] = "process.json";
constexpr char kBlocksName[] = "blocks";
constexpr char kCodeName[] = "code";
constexpr char kMapsName[] = "maps";               // what was mapped where; see maps_log.h
constexpr char kFormerMapsName[] = "former-maps";  // what was there before; of the process's epochs
constexpr char kBuildIdsName[] = "build-ids";      // of the files in both, a line each: ID PATH
constexpr char kPerfMapName[] = "perf.map";  // a copy of the process's, made when it had ended
// Rings are called thread.N.ring, N as RingHeader::slot has it.

constexpr std::size_t kLogHeaderSize_bytes = 4096;

constexpr char kBlocksMagic[8] = {'T', 'T', 'B', 'L', 'O', 'C', 'K', '\n'};
constexpr std::uint32_t kBlocksVersion = 1;
constexpr std::uint64_t kNoThreadLimit = ~0ull;  // of BlocksHeader::thread_room

// Memory that a debugger waits for accesses to: for stores, or for loads as well.
constexpr std::size_t kMaxWatchedRanges = 16;
constexpr std::uint32_t kMaxWatched_bytes = 1024;  // each
struct WatchedRange {
  std::uint64_t begin;
  std::uint32_t size_bytes;
  std::uint32_t on_loads;  // 0 or 1
};
struct WatchedMemory {
  std::uint64_t count;
  WatchedRange ranges[kMaxWatchedRanges];
};

// Threads that a debugger steps; those beyond the limit step as qemu has it. One of them may take a
// signal along, or is to step while the others stand.
constexpr std::size_t kMaxSteppedThreads = 64;
struct SteppedThreads {
  std::uint32_t count;
  std::int32_t lone_tid;         // 0: none
  std::int32_t tid_with_signal;  // 0: none
  std::int32_t signal;           // the system's number
  std::int32_t tids[kMaxSteppedThreads];
};

// System calls that a debugger waits for, a bit each.
constexpr std::uint64_t kMaxCaughtNumber = 1024;
struct CaughtNumbers {
  std::uint64_t words[kMaxCaughtNumber / 64];
};

// A debugger lets go of the program. What is still on its way to it is not the program's business.
struct LettingGo {
  std::uint32_t is_on;
  std::uint32_t is_kept;          // the recording is; else its folder goes away
  std::uint32_t interrupt_comes;  // a SIGINT that the debug server sent
  std::uint32_t step_count;
  std::int32_t steps[kMaxSteppedThreads];  // threads that were to step and have not told of it
};

// Signals that the program gets without the debugger being told, a bit for each of GDB's numbers.
struct PassedNumbers {
  std::uint64_t words[4];
};

// `blocks`: the header, then `capacity` RingBlocks. RingHeader::open_block points among them.
struct BlocksHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t block_size_bytes;
  std::uint64_t address;   // of the first RingBlock, in the writer's address space
  std::uint64_t capacity;  // blocks
  std::atomic<std::uint64_t> used;
  // What could not be recorded; 0 in a whole recording.
  std::atomic<std::uint64_t> lost_blocks;   // translations that found no room here or in `code`
  std::atomic<std::uint64_t> lost_threads;  // threads that got no ring
  std::atomic<std::uint64_t> lost_rings;    // rings of threads long gone that were deleted
  // How many more threads the process may make before one stops to be told of, as a debug server
  // set it while the process stood still.
  std::atomic<std::uint64_t> thread_room;
  WatchedMemory watched;   // set by a debug server as well
  SteppedThreads stepped;  // the same
  CaughtNumbers caught;
  LettingGo letting_go;
  PassedNumbers passed;
};
static_assert(sizeof(BlocksHeader) <= kLogHeaderSize_bytes);
static_assert(offsetof(BlocksHeader, address) == 16);
static_assert(offsetof(BlocksHeader, lost_blocks) == 40);
static_assert(offsetof(BlocksHeader, thread_room) == 64);
static_assert(offsetof(BlocksHeader, watched) == 72);
static_assert(offsetof(BlocksHeader, stepped) == 336);
static_assert(offsetof(BlocksHeader, caught) == 608);
static_assert(offsetof(BlocksHeader, letting_go) == 736);
static_assert(offsetof(BlocksHeader, passed) == 1008);

// A block whose `begin` has this bit (and not the one below: no user address has just one of them)
// is one that the recorder looks at twice; readers take the bit off.
constexpr std::uint64_t kSlowBlock = 1ull << 63;

constexpr std::uint64_t block_begin(std::uint64_t begin) {
  bool marked = (begin >> 62) == 2;
  return marked ? begin & ~kSlowBlock : begin;
}

constexpr char kCodeMagic[8] = {'T', 'T', 'C', 'O', 'D', 'E', '\n', '\0'};
constexpr std::uint32_t kCodeVersion = 1;

// `code`: the header, then `used_bytes` of entries, each a CodeEntry and its bytes, filled up to a
// multiple of 16.
struct CodeHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t reserved;
  std::uint64_t capacity_bytes;           // of the entries
  std::atomic<std::uint64_t> used_bytes;  // of the entries; grows when an entry is whole
};
static_assert(sizeof(CodeHeader) <= kLogHeaderSize_bytes);

struct CodeEntry {
  std::uint64_t address;
  std::uint32_t size_bytes;
  std::uint32_t epoch;  // of the process: 0 holds from the beginning, each change adds one
};
static_assert(sizeof(CodeEntry) == 16);
constexpr std::uint64_t kCodeAlign_bytes = 16;

}  // namespace tailtrace
