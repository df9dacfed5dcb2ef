#include "python/core/ring_view.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <vector>

namespace tailtrace::python {
namespace {

constexpr std::size_t kPage_bytes = 4096;
static_assert(kRingHeaderSize_bytes % kPage_bytes == 0);

// Two adjacent maps of one stretch of a file.
class DoubleMap {
 public:
  // What is written to a map of its own is in no file.
  DoubleMap(std::size_t size_bytes, bool is_own) : size_(size_bytes), is_own_(is_own) {}
  DoubleMap(const DoubleMap&) = delete;
  DoubleMap& operator=(const DoubleMap&) = delete;
  ~DoubleMap() {
    if (data_ != MAP_FAILED) ::munmap(data_, 2 * size_);
  }

  bool map(int fd, off_t offset) {
    // The addresses are taken first, so that both halves surely lie side by side.
    data_ =
        ::mmap(nullptr, 2 * size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return data_ != MAP_FAILED && map_at(data_, fd, offset) &&
           map_at(static_cast<char*>(data_) + size_, fd, offset);
  }
  // Of twice as many slots as the ring has. REQUIRES: nothing is written unless the map is its own.
  BranchRecord* records() const { return static_cast<BranchRecord*>(data_); }

 private:
  bool map_at(void* address, int fd, off_t offset) const {
    int access = is_own_ ? PROT_READ | PROT_WRITE : PROT_READ;
    int flags = is_own_ ? MAP_PRIVATE | MAP_NORESERVE : MAP_SHARED;
    return ::mmap(address, size_, access, flags | MAP_FIXED, fd, offset) != MAP_FAILED;
  }

  std::size_t size_;
  bool is_own_;
  void* data_ = MAP_FAILED;
};

bool can_be_mapped_twice(const Ring& ring) {
  return ring.header().capacity * sizeof(BranchRecord) % kPage_bytes == 0;
}

RecordSpan copy_ring(const Ring& ring, const std::optional<BranchRecord>& closing) {
  RecordRange range = ring.newest(kRingMaxRecords);
  if (closing) range.records.push_back(*closing);
  auto owner = std::make_shared<const std::vector<BranchRecord>>(std::move(range.records));
  return {owner, *owner, range.first};
}

Result<std::shared_ptr<const DoubleMap>> map_ring(const Ring& ring, const std::string& path,
                                                  bool is_own) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail(system_error("cannot open " + path));
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return fail(system_error("cannot stat " + path));
  // Another file may have taken the name since: memory behind a file's end is no memory.
  std::size_t size_bytes = ring.header().capacity * sizeof(BranchRecord);
  if (static_cast<std::uint64_t>(info.st_size) < kRingHeaderSize_bytes + size_bytes)
    return fail(ErrorCode::kGone, "cannot map " + path, "it was replaced while it was opened");
  auto map = std::make_shared<DoubleMap>(size_bytes, is_own);
  if (!map->map(fd.get(), kRingHeaderSize_bytes)) return fail(system_error("cannot map " + path));
  return map;
}

Result<RecordSpan> view(const Ring& ring, const std::string& path,
                        const std::optional<BranchRecord>& closing) {
  if (!can_be_mapped_twice(ring)) return copy_ring(ring, closing);
  const std::uint64_t capacity = ring.header().capacity;
  auto map = map_ring(ring, path, closing.has_value());
  if (!map) return fail(std::move(map.error()));
  const std::uint64_t head = ring.head().value;  // once: it moves where somebody writes
  const std::uint64_t first = head - std::min(head, capacity - 1);
  BranchRecord* begin = (*map)->records() + (first & (capacity - 1));
  std::size_t count = head - first;
  // A ring is never full: the slot at its head holds nothing.
  if (closing) begin[count++] = *closing;
  return RecordSpan{*map, std::span<const BranchRecord>(begin, count), {first}};
}

}  // namespace

Result<RecordSpan> view_ring(std::shared_ptr<const Ring> ring, const std::string& path,
                             bool is_written) {
  Result<RecordSpan> records = view(*ring, path, {});
  if (!records || !is_written || !can_be_mapped_twice(*ring)) return records;
  records->overwritten = [ring, first = records->first.value, count = records->records.size()] {
    return std::min<std::size_t>(count, std::max(ring->oldest().value, first) - first);
  };
  return records;
}

Result<RecordSpan> view_closed_ring(const Ring& ring, const std::string& path,
                                    const BranchRecord& closing) {
  return view(ring, path, closing);
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

}  // namespace tailtrace::python
