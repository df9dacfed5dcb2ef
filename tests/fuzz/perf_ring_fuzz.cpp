// Data rings and AUX areas from anywhere. The first 16 bytes choose head, tail and format, the
// rest fills a ring of the power of two at or below its size.
#include <bit>
#include <cassert>

#include "decoder/perf/aux_area.h"
#include "decoder/perf/data_ring.h"
#include "decoder/perf/events.h"
#include "tests/fuzz/fuzz_driver.h"
#include "tests/unit/perf/ring_model.h"

namespace tailtrace {
namespace {

using namespace perf;

Bytes seed(bool backward, std::size_t records) {
  RingModel model(1024, backward);
  for (std::uint64_t n = 0; n < records; ++n)
    model.write(numbered_record(1 + n % 21, 16 + n % 6 * 16, n));
  std::uint64_t words[2] = {model.head(), backward ? kSampleTid | kSampleTime : 24ull};
  Bytes bytes(sizeof words + model.ring().size());
  std::memcpy(bytes.data(), words, sizeof words);
  std::memcpy(bytes.data() + sizeof words, model.ring().data(), model.ring().size());
  return bytes;
}

void parse_all(const RecordList& list, const RecordFormat& format, std::size_t ring_size) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    bytes += list[i].size();
    auto event = parse_record(list[i], format);
    assert(event || !event.error().why.empty());
  }
  assert(bytes <= ring_size);
}

void order(ByteSpan area, std::uint64_t head) {
  for (AuxHead convention : {AuxHead::kOffset, AuxHead::kRecordOffset, AuxHead::kAbsolute}) {
    auto view = order_aux_area(area, head, convention);
    if (!view) continue;
    Bytes joined = view->joined();
    assert(joined.size() <= area.size());
    Bytes rest = without_leading_zeros(*view).joined();
    assert(rest.empty() || rest[0] != 0);
    assert(std::equal(rest.rbegin(), rest.rend(), joined.rbegin()));
  }
}

}  // namespace

std::vector<Bytes> fuzz_seeds() {
  return {seed(false, 5), seed(false, 100), seed(true, 5), seed(true, 100)};
}

void fuzz_one(ByteSpan input) {
  if (input.size() < 17) return;
  auto head = load<std::uint64_t>(input, 0), bits = load<std::uint64_t>(input, 8);
  ByteSpan ring = input.subspan(16, std::bit_floor(input.size() - 16));
  RecordFormat format{bits & 0xffffff, (bits >> 24 & 1) != 0, bits >> 32 & 0xfffff, bits >> 40};
  if (auto list = read_backward_ring(ring, head)) parse_all(*list, format, ring.size());
  if (auto list = read_forward_ring(ring, bits, head)) parse_all(*list, format, ring.size());
  RecordHeader like{kRecordSample, 0, static_cast<std::uint16_t>(bits)};
  if (auto fixed = read_fixed_records(ring, head, like, bits >> 40)) {
    assert(fixed->count <= bits >> 40 && fixed->count * like.size_bytes <= ring.size());
    for (std::size_t i = 0; i < fixed->count; ++i)
      assert(load<RecordHeader>((*fixed)[i]).type == kRecordSample);
  }
  order(ring, head);
  if (auto view = unread_aux_area(ring, bits, head)) assert(view->size_bytes() == head - bits);
}

}  // namespace tailtrace
