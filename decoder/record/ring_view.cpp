#include "decoder/record/ring_view.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstring>
#include <optional>
#include <vector>

#include "decoder/base/types.h"

namespace tailtrace {
namespace {

static_assert(kRingHeaderSize_bytes % kPage_bytes == 0);

// Two adjacent maps of all slots of a ring.
class DoubleMap {
 public:
  explicit DoubleMap(const Ring& ring)
      : size_bytes_(ring.header().capacity * sizeof(BranchRecord)),
        // The addresses are taken first, so that both halves surely lie side by side.
        data_(::mmap(nullptr, 2 * size_bytes_, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    is_whole_ = data_ != MAP_FAILED && map(ring, 0) && map(ring, size_bytes_);
  }
  DoubleMap(const DoubleMap&) = delete;
  DoubleMap& operator=(const DoubleMap&) = delete;
  ~DoubleMap() {
    if (data_ != MAP_FAILED) ::munmap(data_, 2 * size_bytes_);
  }

  // Otherwise nothing of it can be used.
  bool is_whole() const { return is_whole_; }

  // Of twice as many slots as the ring has.
  const BranchRecord* records() const { return static_cast<BranchRecord*>(data_); }

  // Changes slots in this map alone.
  void put(std::size_t slot, std::span<const BranchRecord> records) {
    if (records.empty()) return;
    std::size_t begin = slot * sizeof(BranchRecord), end = begin + records.size_bytes();
    const std::size_t at = begin % kPage_bytes;
    begin -= at;
    end = (end + kPage_bytes - 1) / kPage_bytes * kPage_bytes;
    std::vector<char> pages(bytes() + begin, bytes() + end);
    std::memcpy(pages.data() + at, records.data(), records.size_bytes());
    is_whole_ = ::mmap(bytes() + begin, pages.size(), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
    if (is_whole_) std::memcpy(bytes() + begin, pages.data(), pages.size());
  }

 private:
  char* bytes() const { return static_cast<char*>(data_); }

  // A map of no size is left where it is, and mapped again: it need not have a name any more.
  bool map(const Ring& ring, std::size_t offset) const {
    return ::mremap(const_cast<BranchRecord*>(ring.slots()), 0, size_bytes_,
                    MREMAP_MAYMOVE | MREMAP_FIXED, bytes() + offset) != MAP_FAILED;
  }

  std::size_t size_bytes_;
  void* data_;
  bool is_whole_ = false;
};

RecordSpan copy_ring(const Ring& ring, std::span<const BranchRecord> closing) {
  RecordRange range = ring.newest(kRingMaxRecords);
  range.records.insert(range.records.end(), closing.begin(), closing.end());
  auto owner = std::make_shared<const std::vector<BranchRecord>>(std::move(range.records));
  return {owner, *owner, range.first};
}

std::optional<RecordSpan> map_ring(const Ring& ring, std::span<const BranchRecord> closing) {
  const std::uint64_t capacity = ring.header().capacity;
  assert(closing.size() <= 2);  // there are as many slots behind the newest, wherever that is
  if (capacity * sizeof(BranchRecord) % kPage_bytes != 0) return std::nullopt;
  auto map = std::make_shared<DoubleMap>(ring);
  if (!map->is_whole()) return std::nullopt;
  const std::uint64_t head = ring.head().value;  // once: it moves where somebody writes
  const std::uint64_t first = head - std::min(head, capacity - 1);
  const std::uint64_t begin = first & (capacity - 1), count = head - first;
  map->put(begin + count, closing);
  if (!map->is_whole()) return std::nullopt;
  return RecordSpan{map, {map->records() + begin, count + closing.size()}, {first}};
}

}  // namespace

RecordSpan view_ring(const Ring& ring, std::span<const BranchRecord> closing) {
  std::optional<RecordSpan> mapped = map_ring(ring, closing);
  return mapped ? std::move(*mapped) : copy_ring(ring, closing);
}

RecordSpan view_written_ring(std::shared_ptr<const Ring> ring) {
  std::optional<RecordSpan> view = map_ring(*ring, {});
  if (!view) return copy_ring(*ring, {});
  view->overwritten = [ring, first = view->first.value, count = view->records.size()] {
    return std::min<std::size_t>(count, std::max(ring->oldest().value, first) - first);
  };
  return std::move(*view);
}

RecordRange copy_of(const RecordSpan& view) {
  RecordRange copy{view.first, {view.records.begin(), view.records.end()}};
  // Whatever the writer reached meanwhile may be half old and half new.
  std::atomic_thread_fence(std::memory_order_acquire);
  const std::size_t gone = view.overwritten ? view.overwritten() : 0;
  copy.records.erase(copy.records.begin(),
                     copy.records.begin() + static_cast<std::ptrdiff_t>(gone));
  copy.first.value += gone;
  return copy;
}

}  // namespace tailtrace
