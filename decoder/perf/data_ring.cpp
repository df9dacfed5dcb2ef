#include "decoder/perf/data_ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>

namespace tailtrace::perf {
namespace {

constexpr std::size_t kHeaderSize_bytes = sizeof(RecordHeader);

// Copies [from, from + out.size()) of a ring; offsets only grow, the ring goes round.
void copy_out(ByteSpan ring, std::uint64_t from, std::span<std::uint8_t> out) {
  if (out.empty()) return;
  std::size_t begin = from & (ring.size() - 1);
  std::size_t before_seam = std::min(out.size(), ring.size() - begin);
  std::memcpy(out.data(), ring.data() + begin, before_seam);
  if (before_seam < out.size())
    std::memcpy(out.data() + before_seam, ring.data(), out.size() - before_seam);
}

Result<void> check_ring(ByteSpan ring) {
  if (std::has_single_bit(ring.size())) return {};
  return fail(ErrorCode::kBadInput, fmt::format("cannot read a ring of {} bytes", ring.size()),
              "a ring's size is a power of two");
}

tl::unexpected<Error> bad_record(RecordHeader header, std::size_t offset) {
  return fail(ErrorCode::kBadInput, "cannot read a ring of perf records",
              fmt::format("the record at offset {} says that it has {} bytes (type {})", offset,
                          header.size_bytes, header.type));
}

bool possible_size(RecordHeader header, std::size_t left) {
  return header.size_bytes >= kHeaderSize_bytes && header.size_bytes <= left &&
         header.size_bytes % 8 == 0;
}

}  // namespace

ByteSpan RecordList::operator[](std::size_t i) const {
  assert(i < offsets_.size());
  return ByteSpan(bytes_).subspan(offsets_[i], load<RecordHeader>(bytes_, offsets_[i]).size_bytes);
}

struct RecordListBuilder {
  RecordList list;

  // Walks records in the order of memory. Returns where the walk ended: at the end of the bytes, or
  // at a header that cannot be right.
  std::size_t walk() {
    std::size_t at = 0;
    while (at + kHeaderSize_bytes <= size() && possible_size(header_at(at), size() - at)) {
      list.offsets_.push_back(at);
      at += header_at(at).size_bytes;
    }
    return at;
  }

  std::size_t size() const { return list.bytes_.size(); }
  RecordHeader header_at(std::size_t at) const { return load<RecordHeader>(list.bytes_, at); }

  // From the order of memory of a backward ring (newest first) into that of time. The kernel puts
  // LOST and the record after the loss into memory together, LOST in front: the order of the two
  // is right in memory, and turning all round puts it wrong.
  void turn_round() {
    std::reverse(list.offsets_.begin(), list.offsets_.end());
    for (std::size_t i = 1; i < list.offsets_.size(); ++i)
      if (header_at(list.offsets_[i]).type == kRecordLost)
        std::swap(list.offsets_[i - 1], list.offsets_[i]);
  }

  void fill(ByteSpan ring, std::uint64_t from, std::size_t size_bytes) {
    list.bytes_.resize(size_bytes);
    copy_out(ring, from, list.bytes_);
  }
};

namespace {

bool all_like(ByteSpan records, RecordHeader like) {
  const RecordHeader mask{~0u, 0, 0xffff};
  const auto relevant = std::bit_cast<std::uint64_t>(mask);
  const auto wanted = std::bit_cast<std::uint64_t>(like);
  std::uint64_t different = 0;
  const std::uint8_t* end = records.data() + records.size();
  for (const std::uint8_t* at = records.data(); at != end; at += like.size_bytes) {
    std::uint64_t header;
    std::memcpy(&header, at, sizeof header);
    different |= (header ^ wanted) & relevant;
  }
  return different == 0;
}

// How many of them, the newest, are newer than the newest stranger.
std::size_t behind_stranger(ByteSpan records, RecordHeader like,
                            std::optional<RecordHeader>& stranger) {
  const std::size_t size = like.size_bytes, count = records.size() / size;
  if (all_like(records, like)) return count;
  for (std::size_t i = count; i-- > 0;) {
    auto header = load<RecordHeader>(records, i * size);
    if (header.type == like.type && header.size_bytes == like.size_bytes) continue;
    stranger = header;
    return count - i - 1;
  }
  return count;
}

// What is older than the newest stranger goes.
void keep_behind_stranger(FixedRecords& records, RecordHeader like) {
  const std::size_t size = like.size_bytes;
  auto check = [&](ByteSpan part) {
    const std::size_t kept = records.stranger ? 0 : behind_stranger(part, like, records.stranger);
    return part.last(kept * size);
  };
  records.newer = check(records.newer);
  if (check(records.cut).empty()) records.cut.clear();
  records.older = check(records.older);
}

}  // namespace

Result<FixedRecords> read_fixed_records(ByteSpan ring, std::uint64_t head, RecordHeader like,
                                        std::uint64_t limit) {
  if (auto ok = check_ring(ring); !ok) return fail(std::move(ok.error()));
  if (like.size_bytes < kHeaderSize_bytes)
    return fail(ErrorCode::kBadInput, "cannot read records without a size");
  const std::uint64_t size = like.size_bytes;
  const std::uint64_t held = std::min<std::uint64_t>(head, ring.size()) / size;
  const std::uint64_t wanted_bytes = std::min(held, limit) * size;
  const std::uint64_t begin = (head - wanted_bytes) & (ring.size() - 1);
  const std::uint64_t before_seam = std::min<std::uint64_t>(wanted_bytes, ring.size() - begin);
  FixedRecords result;
  result.size_bytes = like.size_bytes;
  result.older = ring.subspan(begin, before_seam - before_seam % size);
  std::uint64_t left = wanted_bytes - result.older.size();
  if (before_seam % size != 0) {
    result.cut.resize(size);
    copy_out(ring, begin + result.older.size(), result.cut);
    left -= size;
  }
  result.newer = ring.subspan((head - left) & (ring.size() - 1), left);
  keep_behind_stranger(result, like);
  result.count = (result.older.size() + result.cut.size() + result.newer.size()) / size;
  result.first = head / size - result.count;
  return result;
}

Result<RecordList> read_backward_ring(ByteSpan ring, std::uint64_t head) {
  if (auto ok = check_ring(ring); !ok) return fail(std::move(ok.error()));
  const std::uint64_t written = 0 - head;
  RecordListBuilder builder;
  builder.fill(ring, head, std::min<std::uint64_t>(written, ring.size()));
  std::size_t end = builder.walk();
  // Only in a ring that went round may the oldest record be without its end.
  if (end != builder.size() && written <= ring.size()) {
    RecordHeader header;
    std::size_t left = builder.size() - end;
    if (left >= kHeaderSize_bytes) header = builder.header_at(end);
    return bad_record(header, end);
  }
  builder.turn_round();
  return std::move(builder.list);
}

Result<RecordList> read_forward_ring(ByteSpan ring, std::uint64_t tail, std::uint64_t head) {
  if (auto ok = check_ring(ring); !ok) return fail(std::move(ok.error()));
  if (head - tail > ring.size())
    return fail(ErrorCode::kBadInput, "cannot read a ring of perf records",
                fmt::format("its head {} and tail {} are further apart than its {} bytes", head,
                            tail, ring.size()));
  RecordListBuilder builder;
  builder.fill(ring, tail, head - tail);
  std::size_t end = builder.walk();
  if (end == builder.size()) return std::move(builder.list);
  std::size_t left = builder.size() - end;
  return bad_record(left >= kHeaderSize_bytes ? builder.header_at(end) : RecordHeader{}, end);
}

std::size_t first_of_newest(const RecordList& records, std::uint64_t bytes) {
  std::size_t first = records.size();
  for (std::uint64_t taken = 0; first > 0; --first) {
    taken += records[first - 1].size();
    if (taken > bytes) break;
  }
  return first;
}

}  // namespace tailtrace::perf
