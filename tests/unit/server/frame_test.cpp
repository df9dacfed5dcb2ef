#include "plugin/server/rsp/frame.h"

#include <gmock/gmock.h>

namespace tailtrace::rsp {
namespace {

using Kind = Frame::Kind;

// The frames of a stream that comes `piece_bytes` at a time: kind and payload.
std::vector<std::pair<Kind, std::string>> frames_of(std::string_view stream,
                                                    std::size_t piece_bytes) {
  FrameParser parser;
  std::vector<std::pair<Kind, std::string>> frames;
  while (!stream.empty()) {
    std::string_view piece = stream.substr(0, piece_bytes);
    stream.remove_prefix(piece.size());
    parser.feed(piece);
    while (auto frame = parser.next()) frames.emplace_back(frame->kind, frame->payload);
  }
  return frames;
}

TEST(Frame, IsFoundHoweverTheStreamIsCut) {
  const std::string stream = "+$OK#9a-\x03%Stop:T05#d3$#00noise$m0,4#fd";
  const std::vector<std::pair<Kind, std::string>> frames = {
      {Kind::kAck, ""},       {Kind::kPacket, "OK"},        {Kind::kNack, ""},
      {Kind::kInterrupt, ""}, {Kind::kCorrupt, "Stop:T05"}, {Kind::kPacket, ""},
      {Kind::kPacket, "m0,4"}};
  for (std::size_t piece_bytes : {1u, 2u, 3u, 7u, 1000u})
    EXPECT_EQ(frames_of(stream, piece_bytes), frames) << piece_bytes;
}

TEST(Frame, WithAWrongSumIsCorruptAndTheNextIsFound) {
  EXPECT_EQ(frames_of("$OK#9b$OK#9a", 100), (std::vector<std::pair<Kind, std::string>>{
                                                {Kind::kCorrupt, "OK"}, {Kind::kPacket, "OK"}}));
  EXPECT_EQ(frames_of("$OK#zz", 100),
            (std::vector<std::pair<Kind, std::string>>{{Kind::kCorrupt, "OK"}}));
}

TEST(Frame, ThatNeverEndsIsGivenUp) {
  FrameParser parser;
  parser.feed("$");
  std::string much(FrameParser::kMaxPayload_bytes, 'x');
  parser.feed(much);
  EXPECT_FALSE(parser.next());
  parser.feed("x");
  auto frame = parser.next();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->kind, Kind::kOversize);
  parser.feed("#00$OK#9a");
  EXPECT_FALSE(parser.next());
}

TEST(Frame, CarriesItsSum) {
  std::string out;
  append_frame(out, "OK");
  append_frame(out, "Stop:", '%');
  EXPECT_EQ(out, "$OK#9a%Stop:#e0");
}

TEST(Runs, AreExpanded) {
  // The manual's example: "0* " is "0000".
  std::string out;
  ASSERT_TRUE(expand_runs("0* ", out));
  EXPECT_EQ(out, "0000");
  ASSERT_TRUE(expand_runs("a0*\"b", out));
  EXPECT_EQ(out, "a000000b");
  ASSERT_TRUE(expand_runs("", out));
  EXPECT_EQ(out, "");
}

TEST(Runs, OfNothingOrWithoutACountAreRefused) {
  std::string out;
  EXPECT_FALSE(expand_runs("*!", out));
  EXPECT_FALSE(expand_runs("0*", out));
  EXPECT_FALSE(expand_runs("0*\x1d", out));
}

TEST(Escapes, ComeBackAsTheyWere) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  std::string escaped = escape(bytes);
  EXPECT_EQ(escaped.find_first_of("#$*"), std::string::npos);
  EXPECT_EQ(unescape(escaped), bytes);
  EXPECT_EQ(unescape("a}\x03"
                     "b}"),
            "a#b");
}

}  // namespace
}  // namespace tailtrace::rsp
