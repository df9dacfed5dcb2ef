#include "decoder/perf/aux_holes.h"

#include <gtest/gtest.h>

#include <random>

namespace tailtrace::perf {
namespace {

constexpr std::size_t kRing_bytes = 4096;
constexpr std::size_t kAux_bytes = 32;

// A backward ring with an AUX record for each stretch, as the kernel writes it.
class AuxRing {
 public:
  void put(std::uint64_t offset, std::uint64_t flags) {
    head_ -= kAux_bytes;
    const RecordHeader header{kRecordAux, 0, kAux_bytes};
    std::uint8_t record[kAux_bytes] = {};
    std::memcpy(record, &header, sizeof header);
    std::memcpy(record + 8, &offset, sizeof offset);
    std::memcpy(record + 24, &flags, sizeof flags);
    std::memcpy(bytes_.data() + (head_ & (kRing_bytes - 1)), record, sizeof record);
  }
  std::vector<AuxHole> holes(std::uint64_t capacity, std::uint64_t head) const {
    auto records = read_backward_ring(bytes_, head_);
    EXPECT_TRUE(records);
    auto holes = find_aux_holes(*records, 0, {}, capacity, head);
    EXPECT_TRUE(holes);
    return holes ? *holes : std::vector<AuxHole>();
  }

 private:
  Bytes bytes_ = Bytes(kRing_bytes);
  std::uint64_t head_ = 0;
};

TEST(AuxHoles, WholeTracesHaveNone) {
  AuxRing ring;
  for (std::uint64_t offset : {100u, 300u, 500u}) ring.put(offset, kAuxOverwrite);
  EXPECT_TRUE(ring.holes(1000, 500).empty());
  EXPECT_TRUE(ring.holes(0, 0).empty());
}

TEST(AuxHoles, StandWhereTheirStretchEnds) {
  AuxRing ring;
  ring.put(100, kAuxOverwrite | kAuxTruncated);
  ring.put(300, kAuxOverwrite);
  ring.put(500, kAuxPartial | kAuxCollision);
  EXPECT_EQ(ring.holes(1000, 500),
            (std::vector<AuxHole>{{400, kAuxTruncated}, {0, kAuxPartial | kAuxCollision}}));
}

TEST(AuxHoles, AreForgottenWhenTheAreaWentRound) {
  std::mt19937 random(12);
  for (int round = 0; round < 200; ++round) {
    AuxRing ring;
    constexpr std::uint64_t kCapacity = 1000;
    std::uint64_t written = 0;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ends;
    for (int i = 0; i < 40; ++i) {
      written += random() % 200;
      std::uint64_t flags = random() % 4 == 0 ? std::uint64_t{kAuxPartial} : 0;
      ring.put(written % kCapacity, flags);
      if (flags != 0) ends.emplace_back(written, flags);
    }
    std::vector<AuxHole> expected;
    for (auto [end, flags] : ends)
      if (written - end < kCapacity) expected.push_back({written - end, flags});
    ASSERT_EQ(ring.holes(kCapacity, written % kCapacity), expected);
  }
}

}  // namespace
}  // namespace tailtrace::perf
