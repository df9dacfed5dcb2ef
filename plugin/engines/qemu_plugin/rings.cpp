#include "plugin/engines/qemu_plugin/rings.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "decoder/base/types.h"
#include "plugin/engines/qemu_plugin/shared_file.h"

namespace tailtrace {

RingGeometry g_rings;

namespace {

// More threads than Linux gives a process by default, where addresses allow it.
constexpr std::uint64_t kMaxThreads = 32768;
constexpr std::uint64_t kMaxAddresses_bytes = 1ull << 44;

std::size_t ring_size_bytes(std::uint64_t capacity) {
  return kRingHeaderSize_bytes + capacity * sizeof(BranchRecord);
}

// The open block of a thread that has executed nothing: leaving it makes the kEnable record.
void begin_ring(RingHeader& header) {
  std::uint64_t extra = static_cast<std::uint64_t>(EdgeCause::kThread);
  header.own_block = {0, kNoFallThrough, 0,
                      static_cast<std::uint64_t>(RecordKind::kEnable) << 32 | extra << 48};
  header.address = reinterpret_cast<std::uint64_t>(&header);
  header.clock = RingClock::kTsc;
  header.open_block.store(reinterpret_cast<std::uint64_t>(&header.own_block));
}

// Most rings of short threads are nearly empty. The slot at the head is still written to.
void give_unused_back(RingHeader& header) {
  std::size_t size = ring_size_bytes(header.capacity);
  std::size_t used = header.head_bytes.load(std::memory_order_relaxed) + kRingHeaderSize_bytes;
  std::size_t kept = (used + sizeof(BranchRecord) + kPage_bytes) & ~(kPage_bytes - 1);
  if (kept < size) give_space_back(reinterpret_cast<std::uint8_t*>(&header) + kept, size - kept);
}

}  // namespace

std::string Rings::path_of(std::uint32_t slot) const {
  return folder_ + "/thread." + std::to_string(slot) + ".ring";
}

bool Rings::reserve(std::uint64_t capacity_records) {
  capacity_ = capacity_records;
  size_bytes_ = ring_size_bytes(capacity_records);
  std::uint64_t stride = std::bit_ceil(size_bytes_);
  std::uint64_t room = share_of_addresses(kMaxAddresses_bytes, 8);
  std::uint64_t threads = std::clamp<std::uint64_t>(room / stride, 1, kMaxThreads);
  void* base = nullptr;
  for (; threads != 0 && base == nullptr; threads /= 2) {
    g_rings.spare = static_cast<std::uint32_t>(threads);
    base = reserve_addresses((threads + 1) * stride);
  }
  if (base == nullptr) return false;
  g_rings.base = static_cast<std::uint8_t*>(base);
  g_rings.shift = static_cast<std::uint64_t>(std::countr_zero(stride));
  open_private(ring_of(g_rings.spare), {}, 0);
  begin_ring(g_unread_ring.header);
  init_ring_header(g_unread_ring.header, {}, 0, kRingMinRecords);
  return true;
}

// A ring for nobody, as small as can be.
void Rings::open_private(RingHeader* at, ThreadId thread, std::uint32_t slot) {
  if (map_private(ring_size_bytes(kRingMinRecords), at) == nullptr) ::_exit(127);
  begin_ring(*at);
  init_ring_header(*at, thread, slot, kRingMinRecords);
}

bool Rings::open(std::uint32_t cpu, ThreadId thread) {
  if (cpu >= g_rings.spare) return false;
  RingHeader* header = ring_of(cpu);
  std::uint32_t slot = next_slot_++;
  void* map = map_new_file(path_of(slot), size_bytes_, header);
  if (map == nullptr || !take_space(map, size_bytes_)) {
    int error = errno;
    if (map != nullptr) ::unlink(path_of(slot).c_str());
    open_private(header, thread, slot);
    errno = error;
    return false;
  }
  begin_ring(*header);
  init_ring_header(*header, thread, slot, capacity_);
  return true;
}

bool Rings::close(std::uint32_t cpu, RingState state) {
  if (cpu >= g_rings.spare) return false;
  ring_of(cpu)->state.store(state, std::memory_order_release);
  if (state == RingState::kThreadExited || state == RingState::kProcessExited)
    give_unused_back(*ring_of(cpu));
  if (state != RingState::kThreadExited) return false;
  ended_.push_back(ring_of(cpu)->slot);
  if (ended_.size() <= kMaxEnded) return false;
  ::unlink(path_of(ended_.front()).c_str());
  ended_.pop_front();
  return true;
}

bool Rings::move(std::uint32_t cpu, ThreadId thread) {
  ended_.clear();
  next_slot_ = 1;
  if (cpu >= g_rings.spare) return false;
  RingHeader* header = ring_of(cpu);
  std::uint64_t written = header->head_bytes.load(std::memory_order_relaxed);
  std::size_t size = ring_size_bytes(header->capacity);
  std::size_t used = kRingHeaderSize_bytes + std::min<std::uint64_t>(written, size);
  bool shared = remap_as_copy(header, size, std::min(used, size), size, path_of(0));
  header->pid = thread.pid;
  header->tid.store(thread.tid, std::memory_order_relaxed);
  header->slot = 0;
  header->first_position = written / sizeof(BranchRecord);
  return shared;
}

}  // namespace tailtrace
