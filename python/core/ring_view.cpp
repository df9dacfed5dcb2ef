#include "python/core/ring_view.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

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

}  // namespace

RecordSpan copy_ring(const Ring& ring, const std::optional<BranchRecord>& closing) {
  RecordRange range = ring.newest(kRingMaxRecords);
  if (closing) range.records.push_back(*closing);
  auto owner = std::make_shared<const std::vector<BranchRecord>>(std::move(range.records));
  return {owner, *owner, range.first};
}

Result<RecordSpan> view_ring(const Ring& ring, const std::string& path,
                             const std::optional<BranchRecord>& closing) {
  std::uint64_t capacity = ring.header().capacity;
  std::size_t size_bytes = capacity * sizeof(BranchRecord);
  if (size_bytes % kPage_bytes != 0) return copy_ring(ring, closing);
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail(system_error("cannot open " + path));
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return fail(system_error("cannot stat " + path));
  // Another file may have taken the name since: memory behind a file's end is no memory.
  if (static_cast<std::uint64_t>(info.st_size) < kRingHeaderSize_bytes + size_bytes)
    return fail(ErrorCode::kGone, "cannot map " + path, "it was replaced while it was opened");
  auto map = std::make_shared<DoubleMap>(size_bytes, closing.has_value());
  if (!map->map(fd.get(), kRingHeaderSize_bytes)) return fail(system_error("cannot map " + path));
  Position first = ring.oldest();
  BranchRecord* begin = map->records() + (first.value & (capacity - 1));
  std::size_t count = ring.head().value - first.value;
  // A ring is never full: the slot at its head holds nothing.
  if (closing) begin[count++] = *closing;
  return RecordSpan{map, std::span<const BranchRecord>(begin, count), first};
}

}  // namespace tailtrace::python
