#include "plugin/server/gdb/btrace_documents.h"

#include <gmock/gmock.h>

namespace tailtrace {
namespace {

TEST(BtraceDocuments, BlocksStandNewestFirst) {
  EXPECT_EQ(bts_document({{{0}, {0x1000}}, {{0x2000}, {0x2010}}}),
            "<!DOCTYPE btrace SYSTEM \"btrace.dtd\">\n<btrace version=\"1.0\">\n"
            "<block begin=\"0x2000\" end=\"0x2010\"/>\n<block begin=\"0x0\" end=\"0x1000\"/>\n"
            "</btrace>\n");
}

// Gigabytes of a long history are not held as text as well.
TEST(BtraceDocuments, ComeInPiecesUntilThereIsEnough) {
  const std::vector<BtsBlock> blocks(10000, {{0x2000}, {0x2010}});
  std::size_t pieces = 0;
  std::string text;
  write_bts_document(blocks, [&](std::string_view piece) {
    EXPECT_LT(piece.size(), std::size_t{1} << 17);
    text += piece;
    return ++pieces < 3;
  });
  EXPECT_EQ(pieces, 3u);
  EXPECT_TRUE(bts_document(blocks).starts_with(text));
}

TEST(BtraceDocuments, OfNothingNewHaveNoBlocksAndNoBytes) {
  EXPECT_EQ(bts_document({}),
            "<!DOCTYPE btrace SYSTEM \"btrace.dtd\">\n<btrace version=\"1.0\">\n</btrace>\n");
  std::string pt = pt_document({});
  EXPECT_EQ(pt.find("<raw>"), std::string::npos);
  EXPECT_NE(pt.find("<pt>"), std::string::npos);
}

TEST(BtraceDocuments, PtIsHexadecimalWithoutSpaceInside) {
  Bytes bytes{0x02, 0x82, 0x00, 0xff};
  EXPECT_NE(pt_document(bytes).find("<raw>\n028200ff</raw>"), std::string::npos);
}

TEST(BtraceDocuments, ConfigurationTellsFormatAndSize) {
  EXPECT_NE(conf_document(BtraceFormat::kBts, 0x10000).find("<bts size=\"0x10000\"/>"),
            std::string::npos);
  EXPECT_NE(conf_document(BtraceFormat::kPt, 0x4000).find("<pt size=\"0x4000\"/>"),
            std::string::npos);
}

TEST(BtraceDocuments, SizesAreRoundedAndBounded) {
  EXPECT_EQ(btrace_buffer_size(0), 4096u);
  EXPECT_EQ(btrace_buffer_size(4097), 8192u);
  EXPECT_EQ(btrace_buffer_size(0xffffffff), kMaxBtraceSize_bytes);
  EXPECT_EQ(btrace_buffer_size(~0ull), kMaxBtraceSize_bytes);
}

}  // namespace
}  // namespace tailtrace
