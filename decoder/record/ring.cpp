#include "decoder/record/ring.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "decoder/base/types.h"

namespace tailtrace {
namespace {

Error bad_ring(const std::string& path, std::string why, std::string fix = "record again") {
  return Error{
      ErrorCode::kBadInput, "cannot read the ring " + path, std::move(why), std::move(fix), {}};
}

// Nothing of the header is believed before this: it may come from anywhere.
Result<void> check_header(const std::string& path, ByteSpan bytes) {
  if (bytes.size() < kRingHeaderSize_bytes)
    return fail(bad_ring(path, fmt::format("it has {} bytes, less than its header", bytes.size())));
  const auto& h = *reinterpret_cast<const RingHeader*>(bytes.data());
  if (std::memcmp(h.magic, kRingMagic, sizeof h.magic) != 0)
    return fail(bad_ring(path, "it does not begin as a ring does"));
  if (h.version != kRingVersion)
    return fail(bad_ring(
        path,
        fmt::format("it has version {}, this program reads version {}", h.version, kRingVersion),
        "record again, or read it with the tailtrace that wrote it"));
  if (h.header_size_bytes != kRingHeaderSize_bytes || h.record_size_bytes != sizeof(BranchRecord))
    return fail(bad_ring(path, "its header gives sizes that version 1 does not have"));
  if (!check_ring_capacity(h.capacity) || h.mask_bytes != h.capacity * sizeof(BranchRecord) - 1)
    return fail(
        bad_ring(path, fmt::format("its capacity of {} records is impossible", h.capacity)));
  if ((bytes.size() - kRingHeaderSize_bytes) / sizeof(BranchRecord) < h.capacity)
    return fail(
        bad_ring(path, fmt::format("it is cut short: {} bytes instead of {}", bytes.size(),
                                   kRingHeaderSize_bytes + h.capacity * sizeof(BranchRecord))));
  if (h.head_bytes.load(std::memory_order_relaxed) % sizeof(BranchRecord) != 0)
    return fail(bad_ring(path, "its head lies inside a record"));
  return {};
}

constexpr std::size_t kMany_bytes = 16 << 20;

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

// Of many bytes that are about to be copied, what is read is mapped at once and what is written in
// large pages: page by page both take several times as long as copying. Where the system cannot,
// nothing changes.
void prepare_copy(const void* from, void* to, std::size_t size_bytes) {
  if (size_bytes < kMany_bytes) return;
  auto advise = [size_bytes](std::uintptr_t begin, int advice) {
    const std::uintptr_t page = (begin + kPage_bytes - 1) & ~(kPage_bytes - 1);
    ::madvise(reinterpret_cast<void*>(page), size_bytes - kPage_bytes, advice);
  };
  advise(reinterpret_cast<std::uintptr_t>(from), MADV_POPULATE_READ);
  advise(reinterpret_cast<std::uintptr_t>(to), MADV_HUGEPAGE);
}

}  // namespace

Result<std::uint64_t> check_ring_capacity(std::uint64_t records) {
  if (std::has_single_bit(records) && records >= kRingMinRecords && records <= kRingMaxRecords)
    return records;
  std::uint64_t near = std::clamp(records, kRingMinRecords, kRingMaxRecords);
  return fail(
      ErrorCode::kUsage, fmt::format("a ring cannot hold {} records", records),
      fmt::format("a capacity is a power of two from {} to {}", kRingMinRecords, kRingMaxRecords),
      fmt::format("use {}", std::bit_ceil(near)));
}

Ring::Ring(MappedFile file)
    : file_(std::move(file)),
      header_(reinterpret_cast<const RingHeader*>(file_.bytes().data())),
      records_(
          reinterpret_cast<const BranchRecord*>(file_.bytes().data() + kRingHeaderSize_bytes)) {}

Result<Ring> Ring::open(const std::string& path) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file) return fail(std::move(file.error()));
  if (auto ok = check_header(path, file->bytes()); !ok) return fail(std::move(ok.error()));
  return Ring(std::move(*file));
}

Position Ring::head() const {
  return {header_->head_bytes.load(std::memory_order_acquire) / sizeof(BranchRecord)};
}

Position Ring::oldest() const {
  std::uint64_t head = this->head().value, held = header_->capacity - 1;
  return {head > held ? head - held : 0};
}

const BranchRecord& Ring::slot(std::uint64_t position) const {
  return records_[position & (header_->capacity - 1)];
}

Result<BranchRecord> Ring::at(Position position) const {
  if (position >= head())
    return fail(ErrorCode::kUsage, fmt::format("there is no record {}", position.value),
                fmt::format("the newest record is {}", head().value - 1));
  BranchRecord record = slot(position.value);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (position < oldest())
    return fail(ErrorCode::kGone, fmt::format("record {} is gone", position.value),
                fmt::format("the ring holds {} records and has overwritten it", header_->capacity),
                "record with a larger ring");
  return record;
}

RecordRange Ring::newest(std::uint64_t limit) const {
  std::uint64_t end = head().value;  // once: the oldest of a later moment may lie behind it
  std::uint64_t begin = end - std::min({limit, end, header_->capacity - 1});
  RecordRange range;
  // Whoever closes the history adds a record or two: they shall not cost a copy of all others.
  range.records.reserve(end - begin + 2);
  for (std::uint64_t p = begin; p < end;) {
    std::uint64_t slots_to_edge = header_->capacity - (p & (header_->capacity - 1));
    std::uint64_t count = std::min(end - p, slots_to_edge);
    prepare_copy(&slot(p), range.records.data() + range.records.size(),
                 count * sizeof(BranchRecord));
    range.records.insert(range.records.end(), &slot(p), &slot(p) + count);
    p += count;
  }
  // Whatever the writer reached meanwhile may be half old and half new.
  std::atomic_thread_fence(std::memory_order_acquire);
  std::uint64_t safe = std::min(std::max(begin, oldest().value), end);
  range.records.erase(range.records.begin(),
                      range.records.begin() + static_cast<std::ptrdiff_t>(safe - begin));
  range.first = {safe};
  return range;
}

Result<RingWriter> RingWriter::create(const std::string& path, ThreadId thread, std::uint32_t slot,
                                      std::uint64_t capacity) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return fail(system_error("cannot make the ring " + path));
  RingWriter writer;
  std::size_t size = kRingHeaderSize_bytes + capacity * sizeof(BranchRecord);
  // Space is taken now: a full file system must be an error here, not a signal later.
  if (int error = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(size)); error != 0)
    return fail(
        system_error(fmt::format("cannot make the ring {} of {} bytes", path, size), error));
  void* map = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (map == MAP_FAILED) return fail(system_error("cannot map the ring " + path));
  writer.size_ = size;
  writer.header_ = static_cast<RingHeader*>(map);
  writer.records_ =
      reinterpret_cast<BranchRecord*>(static_cast<std::uint8_t*>(map) + kRingHeaderSize_bytes);
  init_ring_header(*writer.header_, thread, slot, capacity);
  return writer;
}

RingWriter::RingWriter(RingWriter&& other) noexcept { *this = std::move(other); }

RingWriter& RingWriter::operator=(RingWriter&& other) noexcept {
  std::swap(header_, other.header_);
  std::swap(records_, other.records_);
  std::swap(size_, other.size_);
  return *this;
}

RingWriter::~RingWriter() {
  if (header_ != nullptr) ::munmap(header_, size_);
}

Position RingWriter::head() const {
  return {header_->head_bytes.load(std::memory_order_relaxed) / sizeof(BranchRecord)};
}

void RingWriter::push(const BranchRecord& record) {
  std::uint64_t position = head().value;
  records_[position & (header_->capacity - 1)] = record;
  header_->head_bytes.store((position + 1) * sizeof(BranchRecord), std::memory_order_release);
}

void RingWriter::set_open_run(std::uint64_t insns, Address next) {
  header_->own_block = {next.value, next.value, next.value, 0};
  header_->run_insns.store(insns, std::memory_order_relaxed);
}

}  // namespace tailtrace
