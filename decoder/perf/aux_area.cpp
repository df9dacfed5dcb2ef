#include "decoder/perf/aux_area.h"

#include <fmt/format.h>

#include <algorithm>

namespace tailtrace::perf {
namespace {

std::size_t leading_zeros(ByteSpan bytes) {
  std::size_t at = 0;
  // Words first: most of a large area may never have been written.
  while (at + 8 <= bytes.size() && load<std::uint64_t>(bytes, at) == 0) at += 8;
  while (at < bytes.size() && bytes[at] == 0) ++at;
  return at;
}

tl::unexpected<Error> bad_head(std::uint64_t head, std::size_t capacity, std::string why) {
  return fail(
      ErrorCode::kBadInput,
      fmt::format("cannot order a trace buffer of {} bytes with its head at {}", capacity, head),
      std::move(why));
}

}  // namespace

Bytes AuxView::joined() const {
  // Grown and not resized: clearing large memory costs as much as copying into it.
  Bytes bytes;
  bytes.reserve(size_bytes());
  bytes.insert(bytes.end(), older.begin(), older.end());
  bytes.insert(bytes.end(), newer.begin(), newer.end());
  return bytes;
}

Result<AuxView> order_aux_area(ByteSpan area, std::uint64_t head, AuxHead convention) {
  std::size_t capacity = area.size();
  if (convention == AuxHead::kRecordOffset) capacity -= capacity % kBtsRecordSize_bytes;
  if (convention == AuxHead::kAbsolute) {
    if (area.empty()) return AuxView{};
    head %= capacity;
  }
  if (head > capacity) return bad_head(head, capacity, "the head lies behind the buffer");
  if (convention == AuxHead::kRecordOffset && head % kBtsRecordSize_bytes != 0)
    return bad_head(head, capacity, "the head stands inside a 24-byte record");
  if (head == capacity) head = 0;
  return AuxView{area.subspan(head, capacity - head), area.first(head)};
}

Result<AuxView> unread_aux_area(ByteSpan area, std::uint64_t tail, std::uint64_t head) {
  std::uint64_t unread = head - tail;
  if (unread > area.size())
    return bad_head(head, area.size(), fmt::format("the tail is at {}", tail));
  if (unread == 0) return AuxView{};
  std::size_t begin = tail % area.size();
  std::size_t before_seam = std::min<std::size_t>(unread, area.size() - begin);
  return AuxView{area.subspan(begin, before_seam), area.first(unread - before_seam)};
}

AuxView without_leading_zeros(AuxView view) {
  std::size_t zeros = leading_zeros(view.older);
  if (zeros < view.older.size()) return {view.older.subspan(zeros), view.newer};
  return {{}, view.newer.subspan(leading_zeros(view.newer))};
}

}  // namespace tailtrace::perf
