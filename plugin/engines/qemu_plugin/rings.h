// Rings: one ring file per thread, all of them mapped into one reserved stretch of addresses at a
// fixed distance, so that a vCPU's ring is found by arithmetic.
//
// A vCPU number is used again when its thread has ended; the new thread gets a new ring, and the
// old one stays behind as a file.
//
// Threading: opening and closing under the caller's lock; ring_of() at any time.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "decoder/record/ring_format.h"

namespace tailtrace {
// The ring that this thread's blocks go to.
struct RingHeader;
}  // namespace tailtrace
extern "C" __attribute__((
    tls_model("initial-exec"))) thread_local constinit tailtrace::RingHeader* tailtrace_ring;

namespace tailtrace {

// A ring without a file, as small as can be.
struct UnreadRing {
  RingHeader header;
  std::uint8_t rest[kRingHeaderSize_bytes - sizeof(RingHeader)];
  BranchRecord records[kRingMinRecords];
};
extern UnreadRing g_unread_ring;  // where a thread's blocks go before it has a ring

// ring = base + (min(cpu, spare) << shift). The ring of number `spare` takes the records of threads
// that have none, and nobody reads it.
struct RingGeometry {
  std::uint8_t* base = nullptr;
  std::uint64_t shift = 0;
  std::uint32_t spare = 0;
};
extern RingGeometry g_rings;

inline RingHeader* ring_of(std::uint32_t cpu) {
  std::uint64_t index = cpu < g_rings.spare ? cpu : g_rings.spare;
  return reinterpret_cast<RingHeader*>(g_rings.base + (index << g_rings.shift));
}

class Rings {
 public:
  // Reserves addresses.
  bool reserve(std::uint64_t capacity_records);

  // Where ring files are made.
  void set_folder(const std::string& folder) { folder_ = folder; }

  // A fresh ring for a vCPU, in kEmpty state, its open block the one that begins a thread.
  // False and errno: it has one that no reader will see.
  bool open(std::uint32_t cpu, ThreadId thread);

  // The thread has ended. True when an older ring was deleted to keep the number of them bounded.
  bool close(std::uint32_t cpu, RingState state);

  // After a fork: the ring of `cpu` goes on as a file of its own in the folder, as the only one.
  bool move(std::uint32_t cpu, ThreadId thread);

  std::uint32_t limit() const { return g_rings.spare; }

 private:
  // Rings of ended threads that are kept.
  static constexpr std::size_t kMaxEnded = 256;

  std::string path_of(std::uint32_t slot) const;
  void open_private(RingHeader* at, ThreadId thread, std::uint32_t slot);

  std::string folder_;
  std::uint64_t capacity_ = 0;
  std::size_t size_bytes_ = 0;
  std::uint32_t next_slot_ = 0;
  std::deque<std::uint32_t> ended_;
};

}  // namespace tailtrace
