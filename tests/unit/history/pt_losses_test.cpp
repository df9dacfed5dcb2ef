// Losses in a history that is read from an Intel PT trace segment by segment: what is not shown is
// one gap wherever the trace is cut, and no segment is long because nothing is shown.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "decoder/history/history.h"
#include "decoder/history/opened_thread.h"
#include "decoder/history/pt_segments.h"
#include "decoder/pt/packets/packet_writer.h"
#include "decoder/pt/record_sink.h"

namespace tailtrace {
namespace {

constexpr Address kLoop{0x1000};

// jnz 1000; nop; jmp far [rax]
std::shared_ptr<CodeImage> looping_code() {
  auto code = std::make_shared<CodeImage>();
  EXPECT_TRUE(code->add(kLoop, {0x75, 0xfe, 0x90, 0x48, 0xff, 0x28}));
  return code;
}

void synchronize(pt::PacketWriter& packets, std::optional<Address> at) {
  packets.psb();
  packets.mode_exec(CodeMode::k64);
  if (at) packets.fup(*at);
  packets.psbend();
}

void end_at(pt::PacketWriter& packets, Address at) {
  packets.fup(at);
  packets.tip_pgd_suppressed();
}

// Addresses and gaps.
std::string shown(const ThreadFrame& frame, const std::shared_ptr<const SegmentSource>& source) {
  const History history(frame, source,
                        {HistorySettings::Numbers::kFromOldest, 1 << 16, 1, {}, {}, {}});
  std::string text;
  HistoryCursor cursor(history);
  for (cursor.seek_to_oldest(); cursor.valid(); cursor.next()) {
    const HistoryItem& item = cursor.item();
    text += item.is_gap ? fmt::format("[{}] ", reason_name(item.gap.reason))
                        : fmt::format("{:x} ", item.instruction.address.value);
  }
  return text;
}

// Of segments as short as can be.
std::string shown(const Bytes& trace, const std::shared_ptr<const CodeImage>& code) {
  ThreadFrame frame;
  frame.code = code;
  return shown(frame, std::make_shared<PtSegments>(nullptr, trace, code, pt::DecoderConfig{},
                                                   PtSegmentsOptions{0, {}, {}}));
}

// Of the records of one linear decode.
std::string shown_of_records(const Bytes& trace, const std::shared_ptr<const CodeImage>& code) {
  pt::RecordSink sink;
  pt::make_flow_decoder(*code, {})->decode(trace, sink);
  sink.finish();
  auto records = std::make_shared<const std::vector<BranchRecord>>(sink.drain());
  ThreadFrame frame;
  frame.code = code;
  const OpenedThread opened = records_in_place(frame, records, *records, records->size());
  return shown(opened.frame, opened.source);
}

TEST(PtLosses, WithNothingShownBetweenAreOneGap) {
  pt::PacketWriter packets;
  auto overflow = [&] {
    packets.ovf();
    packets.fup(kLoop);
  };
  synchronize(packets, {});
  packets.tip_pge(kLoop);
  packets.tnt(true);
  packets.flush();
  overflow();
  synchronize(packets, kLoop);
  overflow();
  synchronize(packets, kLoop);
  // Nothing is executed here either.
  end_at(packets, kLoop);
  packets.tip_pge(kLoop + 2);
  end_at(packets, kLoop + 3);
  EXPECT_EQ(shown(packets.take(), looping_code()), "1000 [overflow] 1002 ");
}

TEST(PtLosses, EndWhereSomethingIsShown) {
  pt::PacketWriter packets;
  synchronize(packets, {});
  packets.tip_pge(kLoop);
  packets.tnt(true);
  packets.flush();
  for (int i = 0; i < 2; ++i) {
    packets.ovf();
    packets.fup(kLoop);
    synchronize(packets, kLoop);
    packets.tnt(true);
    packets.flush();
  }
  end_at(packets, kLoop);
  EXPECT_EQ(shown(packets.take(), looping_code()), "1000 [overflow] 1000 [overflow] 1000 ");
}

// Records do not say of which mode the code is.
TEST(PtLosses, CodeOf32BitsIsOne) {
  constexpr Address kNarrow{0x2000};
  pt::PacketWriter packets;
  synchronize(packets, kLoop + 3);
  packets.mode_exec(CodeMode::k32);
  packets.tip_now(kNarrow);
  packets.tnt(true);
  packets.tnt(false);
  packets.tip_pgd_suppressed();
  packets.mode_exec(CodeMode::k64);
  packets.tip_pge(kLoop + 2);
  end_at(packets, kLoop + 3);
  auto code = looping_code();
  ASSERT_TRUE(code->add(kNarrow, {0x40, 0x75, 0xfd, 0xcd, 0x80}));  // inc eax; jnz 2000; int 80
  EXPECT_EQ(shown(packets.take(), code), "1003 [narrow-code] 1002 ");
  EXPECT_EQ(
      gap_text({GapReason::kNarrowCode, kNarrow}),
      "the code at 0x2000 is of 32 or 16 bits, which tailtrace decode shows, histories do not");
}

// A far return tells the mode with where it leads to.
TEST(PtLosses, EndWhereAFarReturnLeadsTo64BitCode) {
  constexpr Address kNarrow{0x2000};
  pt::PacketWriter packets;
  synchronize(packets, kLoop + 3);
  packets.mode_exec(CodeMode::k32);
  packets.tip_now(kNarrow);
  packets.tnt(true);
  packets.tnt(false);
  packets.mode_exec(CodeMode::k16);
  packets.tip_now(kNarrow);
  packets.mode_exec(CodeMode::k64);
  packets.tip_now(kLoop);
  packets.tnt(false);
  end_at(packets, kLoop + 3);
  auto code = looping_code();
  ASSERT_TRUE(code->add(kNarrow, {0x40, 0x75, 0xfd, 0xcb}));  // inc eax; jnz 2000; retf
  EXPECT_EQ(shown(packets.take(), code), "1003 [narrow-code] 1000 1002 ");
}

// Where tracing is said to be left for is where no conditional branch leads to: it was executed,
// and where it led is not known.
TEST(PtLosses, BeforeTheEndOfTracingHideNothing) {
  const auto code = looping_code();
  for (const Address left_for : {kLoop, kLoop + 2, Address{0x5000}})
    for (const std::size_t pads : {0, 64}) {  // without them the fast path does not look
      pt::PacketWriter packets;
      synchronize(packets, kLoop);
      packets.tnt(true);
      packets.tip_pgd(left_for);
      packets.tip_pge(kLoop + 2);
      for (std::size_t i = 0; i < pads; ++i) packets.pad();
      end_at(packets, kLoop + 3);
      const Bytes trace = packets.take();
      EXPECT_EQ(shown(trace, code), "1000 1000 [not-recorded] 1002 ") << left_for.value;
      EXPECT_EQ(shown_of_records(trace, code), "1000 1000 [not-recorded] 1002 ") << left_for.value;
    }
}

TEST(PtLosses, AreCutWhereNothingIsShownForLong) {
  constexpr std::uint64_t kLeast_bytes = 20, kMostUncut = 64;
  pt::PacketWriter packets;
  for (int i = 0; i < 300; ++i) {
    synchronize(packets, kLoop);
    packets.tip_now(kLoop);
  }
  const Bytes trace = packets.take();
  const PtSegments source(nullptr, trace, std::make_shared<CodeImage>(), {},
                          PtSegmentsOptions{kLeast_bytes, {}, {}});
  auto reader = source.reader();
  std::vector<std::uint64_t> sizes;
  for (auto extent = reader->cut(source.size()); extent; extent = reader->cut(extent->begin))
    sizes.push_back(extent->end - extent->begin);
  ASSERT_GT(sizes.size(), 3u);
  sizes.pop_back();  // the oldest is what is left
  for (std::uint64_t size : sizes) {
    EXPECT_GT(size, kMostUncut * kLeast_bytes);
    EXPECT_LE(size, 2 * kMostUncut * kLeast_bytes);
  }
}

}  // namespace
}  // namespace tailtrace
