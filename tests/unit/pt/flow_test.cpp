// The flow decoder: real traces against the instruction lists that Intel's decoder gave for them,
// and situations in which ours has to know better than it.
#include "decoder/pt/flow/flow.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/support/pt_inputs.h"

namespace tailtrace::pt {
namespace {

// Instructions as hexadecimal, events and gaps as words, in the order in which they came.
struct Listing : Sink {
  std::vector<std::uint64_t> addresses;
  std::vector<Event> events;
  std::vector<Gap> gaps;
  std::string text;

  void instructions(std::span<const Instruction> run, const RunState&) override {
    for (const Instruction& insn : run) {
      addresses.push_back(insn.address.value);
      if (text.size() < 4096) text += fmt::format("{:x} ", insn.address.value);
    }
  }
  void event(const Event& event) override {
    events.push_back(event);
    if (text.size() < 4096) text += fmt::format("[{}] ", static_cast<int>(event.kind));
  }
  void gap(const Gap& gap) override {
    gaps.push_back(gap);
    if (text.size() < 4096) text += fmt::format("({}) ", error_text(gap.error));
  }
};

Listing decode(const CodeImage& code, ByteSpan trace, const DecoderConfig& config = {}) {
  Listing listing;
  make_flow_decoder(code, config)->decode(trace, listing);
  return listing;
}

// --- Real traces -----------------------------------------------------------------------------

struct Real {
  const char* name;
  const char* json;
  const char* expected;
};

class RealTrace : public testing::TestWithParam<Real> {};

TEST_P(RealTrace, SameInstructionsAsIntelsDecoder) {
  std::optional<std::string> folder = real_pt_folder();
  if (!folder) GTEST_SKIP() << "no real traces here; TAILTRACE_REAL_PT names their folder";
  Result<PtInput> input = load_trace_json(*folder + "/" + GetParam().json);
  ASSERT_TRUE(input) << input.error().to_string();
  auto expected = read_addresses_xz(*folder + "/expected/" + GetParam().expected);
  ASSERT_TRUE(expected) << expected.error().to_string();
  Listing listing = decode(*input->code, input->trace, input->config);
  ASSERT_EQ(listing.addresses.size(), expected->size());
  EXPECT_TRUE(listing.addresses == *expected);
  EXPECT_TRUE(listing.gaps.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Pt, RealTrace,
    testing::Values(Real{"Mruby", "libxdc/mruby/trace.json", "libxdc-mruby.linear.ips.xz"},
                    Real{"Unzip", "libxdc/Unzip/trace.json", "libxdc-Unzip.linear.ips.xz"},
                    Real{"Foo", "libxdc/foo/trace.json", "libxdc-foo.linear.ips.xz"},
                    Real{"IcelakeTip", "libxdc/icelake_tip/trace.json",
                         "libxdc-icelake_tip.linear.ips.xz"},
                    Real{"Lldb", "intelpt-trace/trace.json", "lldb-intelpt-trace.linear.ips.xz"},
                    Real{"Dynamorio", "dynamorio/trace.json", "dynamorio-hello.linear.ips.xz"}),
    [](const auto& info) { return std::string(info.param.name); });

// --- Situations ------------------------------------------------------------------------------

// Code at 0x1000, and PT bytes put together by hand.
struct Situation {
  CodeImage code;
  Bytes trace;
  DecoderConfig config;

  explicit Situation(std::initializer_list<std::uint8_t> bytes) {
    EXPECT_TRUE(code.add({0x1000}, Bytes(bytes)));
  }
  Situation& raw(std::initializer_list<std::uint8_t> bytes) {
    trace.insert(trace.end(), bytes);
    return *this;
  }
  Situation& ip_packet(std::uint8_t low, std::uint64_t ip) {  // IPBytes 011b
    trace.push_back(static_cast<std::uint8_t>(low | 0x60));
    for (int i = 0; i < 6; ++i) trace.push_back(static_cast<std::uint8_t>(ip >> (8 * i)));
    return *this;
  }
  Situation& psb(std::uint64_t ip = 0) {
    for (int i = 0; i < 8; ++i) raw({0x02, 0x82});
    raw({0x99, 0x01});
    if (ip != 0) ip_packet(0x1d, ip);
    return raw({0x02, 0x23});
  }
  Situation& tip(std::uint64_t ip) { return ip_packet(0x0d, ip); }
  Situation& fup(std::uint64_t ip) { return ip_packet(0x1d, ip); }
  Situation& pge(std::uint64_t ip) { return ip_packet(0x11, ip); }
  Situation& pgd(std::uint64_t ip) { return ip_packet(0x01, ip); }
  Situation& tnt(std::string_view bits) {  // "tn": taken, then not
    unsigned value = 1;
    for (char c : bits) value = value << 1 | (c == 't' ? 1 : 0);
    trace.push_back(static_cast<std::uint8_t>(value << 1));
    return *this;
  }
  std::string text() const { return decode(code, trace, config).text; }
};

TEST(Flow, CodeThatIsNotKnownCostsUpToTheNextEvent) {
  Situation s({0xff, 0xe0, 0x90});  // 1000 jmp rax; 1002 nop
  s.psb(0x1000).tip(0x5000).tnt("tn").pgd(0x6000).pge(0x1002).fup(0x1003).pgd(0x6000);
  EXPECT_EQ(s.text(),
            "[5] 1000 (the bytes of an executed instruction are not known) [0] 1002 [2] ");
}

// SDM, "RET compression": the entry is popped by every RET. Intel's decoder (2.0.5) leaves it when
// a RET does not match, and takes the next compressed RET to the wrong place.
TEST(Flow, ReturnThatDoesNotMatchPopsItsEntry) {
  Situation s({
      0xe8, 0x06, 0x00, 0x00, 0x00,  // 1000 call 100b
      0x90,                          // 1005 nop: the outer return goes here
      0x74, 0xfe,                    // 1006 je 1006
      0x90, 0x90, 0x90,              // 1008
      0xe8, 0x02, 0x00, 0x00, 0x00,  // 100b call 1012
      0x90, 0x90,                    // 1010
      0xc3,                          // 1012 ret: to 1013, not to 1010
      0xc3,                          // 1013 ret: compressed
  });
  s.psb(0x1000).tip(0x1013).tnt("tn");
  EXPECT_EQ(s.text(), "[5] 1000 100b 1012 1013 1005 1006 [25] ");
}

TEST(Flow, CallOfTheNextInstructionIsNotReturnedTo) {
  Situation s({
      0xe8, 0x02, 0x00, 0x00, 0x00,  // 1000 call 1007
      0x74, 0xfe,                    // 1005 je 1005
      0xe8, 0x00, 0x00, 0x00, 0x00,  // 1007 call 100c
      0x58,                          // 100c pop rax
      0xc3,                          // 100d ret
  });
  s.psb(0x1000).tnt("tn");
  EXPECT_EQ(s.text(), "[5] 1000 1007 100c 100d 1005 [25] ");
}

TEST(Flow, LoopWithoutPacketsIsAGapAndNotForEver) {
  Situation s({0x90, 0xeb, 0x00, 0xeb, 0xfc});  // jmp +0; jmp 1001
  s.psb(0x1000).tnt("t").psb(0x1000);
  Listing listing = decode(s.code, s.trace);
  ASSERT_FALSE(listing.gaps.empty());
  EXPECT_EQ(listing.gaps[0].error, DecodeError::kEndlessLoop);
  EXPECT_LT(listing.addresses.size(), 100u);
}

TEST(Flow, GapTellsWhereHowMuchAndWhyAndDecodingGoesOnAtTheNextPsb) {
  Situation s({0x90, 0xff, 0xe0});  // jmp rax
  s.psb(0x1000).tip(0x5000).tnt("t");
  std::size_t second = s.trace.size();
  s.psb(0x1000).tip(0x1000);
  Listing listing = decode(s.code, s.trace);
  ASSERT_EQ(listing.gaps.size(), 1u);
  const Gap& gap = listing.gaps[0];
  EXPECT_EQ(gap.error, DecodeError::kNoCode);
  EXPECT_EQ(gap.ip.value, 0x5000u);
  EXPECT_EQ(gap.offset_bytes + gap.size_bytes, second);
  EXPECT_EQ(listing.text,
            "[5] 1000 1001 (the bytes of an executed instruction are not known) "
            "[5] 1000 1001 [25] ");
}

TEST(Flow, DeferredTipComesBehindOutcomesOfLaterBranches) {
  Situation s({
      0xff, 0xe0,  // 1000 jmp rax
      0x74, 0x00,  // 1002 je 1004
      0x74, 0x00,  // 1004 je 1006
      0x90,        // 1006
  });
  s.psb(0x1000).tnt("nt").tip(0x1002);
  EXPECT_EQ(s.text(), "[5] 1000 1002 1004 [25] ");
}

TEST(Flow, ModeExecAtAFupTellsTheInterruptFlag) {
  Situation s({0x90, 0xfb, 0x90, 0xfa, 0xf4});  // nop; sti; nop; cli; hlt
  s.psb().raw({0x99, 0x01}).pge(0x1000);
  s.raw({0x99, 0x05}).fup(0x1002).raw({0x99, 0x01}).fup(0x1004).fup(0x1004).pgd(0x1004);
  Listing listing = decode(s.code, s.trace);
  EXPECT_EQ(listing.text, "[5] [0] [5] 1000 1001 [21] 1002 1003 [21] [2] ");
  EXPECT_EQ(listing.events[3].payload, 1u);
  EXPECT_EQ(listing.events[4].payload, 0u);
}

TEST(Flow, TriggerLiesItsCountBehindTheLastAddress) {
  Situation s({0x90, 0x90, 0x90, 0x90, 0xf4});
  s.psb(0x1000).raw({0x02, 0xe2}).fup(0x1001);  // EXSTOP with IP
  s.raw({0xd9, 0x40, 0xa1, 0x02, 0x00});        // TRIG, ICNT 2
  s.fup(0x1004).pgd(0x1004);
  EXPECT_EQ(s.text(), "[5] 1000 [13] 1001 1002 [24] 1003 [2] ");
}

TEST(Flow, EventTraceNamesItsPlace) {
  Situation s({0x90, 0x90, 0x48, 0xcf, 0x90, 0xf4});              // nop; nop; iretq
  s.psb(0x1000).raw({0x02, 0x53, 0x00, 1, 2, 3, 4, 5, 6, 7, 8});  // EVD: CR2
  s.raw({0x02, 0x13, 0x81, 0x0e}).fup(0x1001);                    // CFE: interrupt 14 at 1001
  s.raw({0x02, 0x13, 0x82, 0x00}).fup(0x1002);                    // CFE: IRET at 1002
  s.tip(0x1005).fup(0x1005).pgd(0x1005);
  EXPECT_EQ(s.text(), "[5] [20] 1000 [19] 1001 1002 [19] [2] ");
}

TEST(Flow, OverflowAtTheEndIsReported) {
  Situation s({0x90});
  s.psb(0x1000).raw({0x02, 0xf3});
  EXPECT_EQ(s.text(), "[5] [4] ");
}

TEST(Flow, NothingButPaddingIsNoGap) {
  CodeImage code;
  Bytes padding(64, 0);
  EXPECT_EQ(decode(code, padding).text, "");
  EXPECT_EQ(decode(code, {}).text, "");
  Bytes noise(64, 0x55);
  EXPECT_EQ(decode(code, noise).text, "(there is no point to begin at) ");
}

TEST(Flow, ChangedCodeIsReadAsItWasAtTheTime) {
  Situation s({0x74, 0xfe});                                             // je 1000
  ASSERT_TRUE(s.code.add({0x1000}, Bytes{0x90, 0x74, 0xfd}, Epoch{1}));  // nop; je 1000
  s.psb(0x1000).tnt("t");
  std::size_t changed = s.trace.size();
  s.tnt("t");
  s.config.code_changes = {{changed, 0, Epoch{1}}};
  // The second outcome belongs to the new code; what ran before it was read while it was peeked at.
  Listing listing = decode(s.code, s.trace, s.config);
  EXPECT_TRUE(listing.gaps.empty());
}

// --- Segments --------------------------------------------------------------------------------

TEST(Flow, TwoPsbsJoinSeamlessly) {
  Situation s({0x90, 0x90, 0x74, 0xfc});  // nop; nop; je 1000
  s.psb(0x1000).tnt("tt");
  std::size_t second = s.trace.size();
  s.psb(0x1001).tnt("t").tnt("n");
  Listing whole, parts;
  FlowWalker(s.trace, s.code, s.config, whole).run(0, s.trace.size());
  FlowWalker(s.trace, s.code, s.config, parts).run(0, second);
  FlowWalker(s.trace, s.code, s.config, parts).run(second, s.trace.size());
  EXPECT_EQ(whole.text, parts.text);
  EXPECT_EQ(whole.text,
            "[5] 1000 1001 1002 1000 1001 1002 1000 [5] 1001 1002 1000 1001 1002 [25] ");
}

}  // namespace
}  // namespace tailtrace::pt
