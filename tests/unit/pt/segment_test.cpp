// The fast path and segments: the same records as the complete decoder makes of the whole trace,
// whatever takes which packets, and however the trace is cut.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <thread>

#include "decoder/history/history.h"
#include "decoder/history/pt_segments.h"
#include "decoder/pt/flow/flow.h"
#include "decoder/pt/packets/packet_reader.h"
#include "decoder/pt/segments/segments.h"
#include "decoder/pt/synthesis/synthesis.h"
#include "tests/support/adversarial_traces.h"
#include "tests/support/pt_inputs.h"
#include "tests/support/random_program.h"
#include "tests/support/temp_folder.h"

namespace tailtrace::pt {
namespace {

std::vector<BranchRecord> complete_records(const PtInput& input) {
  RecordSink sink;
  FlowWalker(input.trace, *input.code, input.config, sink).run(0, input.trace.size());
  sink.finish();
  return sink.drain();
}

std::vector<BranchRecord> decoder_records(const PtInput& input) {
  RecordSink sink;
  make_flow_decoder(*input.code, input.config)->decode(input.trace, sink);
  sink.finish();
  return sink.drain();
}

std::vector<BranchRecord> segment_records(const PtInput& input, std::size_t least_bytes,
                                          unsigned threads) {
  std::vector<Segment> segments = find_segments(input.trace, least_bytes);
  std::vector<SegmentPath> paths =
      decode_segments(input.trace, segments, *input.code, input.config, threads);
  return join_records(paths);
}

std::string text(const BranchRecord& r) {
  return fmt::format("{} {:x} -> {:x} time {:x} insns {} flags {:x} extra {}", kind_name(r.kind),
                     r.from.value, r.to.value, r.time, r.insns, r.flags, r.extra);
}

void expect_same(const std::vector<BranchRecord>& got, const std::vector<BranchRecord>& expected) {
  for (std::size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    ASSERT_TRUE(got[i] == expected[i])
        << "record " << i << ": " << text(got[i]) << " instead of " << text(expected[i]);
  }
  EXPECT_EQ(got.size(), expected.size());
}

std::vector<PtInput> inputs() {
  std::vector<PtInput> all;
  if (std::optional<std::string> folder = real_pt_folder())
    for (const char* name : {"libxdc/mruby", "libxdc/Unzip", "libxdc/foo", "libxdc/icelake_tip",
                             "intelpt-trace", "dynamorio"})
      if (Result<PtInput> input = load_trace_json(*folder + "/" + name + "/trace.json"))
        all.push_back(std::move(*input));
  return all;
}

TEST(Segments, FastPathMakesTheRecordsOfTheCompleteDecoder) {
  std::vector<PtInput> all = inputs();
  if (all.empty()) GTEST_SKIP() << "no traces here; TAILTRACE_REAL_PT names their folder";
  for (const PtInput& input : all) {
    SCOPED_TRACE(input.name);
    std::vector<BranchRecord> complete = complete_records(input);
    expect_same(decoder_records(input), complete);
    expect_same(segment_records(input, input.trace.size(), 1), complete);
  }
}

TEST(Segments, AnyCutAndAnyNumberOfThreadsMakeTheSameRecords) {
  std::vector<PtInput> all = inputs();
  if (all.empty()) GTEST_SKIP() << "no traces here; TAILTRACE_REAL_PT names their folder";
  for (const PtInput& input : all) {
    SCOPED_TRACE(input.name);
    std::vector<BranchRecord> whole = segment_records(input, input.trace.size(), 1);
    expect_same(segment_records(input, 0, 1), whole);
    expect_same(segment_records(input, 10000, 3), whole);
  }
}

// Where the fast path remembers nothing that comes again, and where its memory is full.
TEST(Segments, TracesThatNeverRepeatMakeTheSameRecords) {
  TempFolder folder;
  auto inputs = adversarial_traces(folder.path(), 150'000);
  ASSERT_TRUE(inputs) << inputs.error().to_string();
  for (const PtInput& input : *inputs) {
    SCOPED_TRACE(input.name);
    std::vector<BranchRecord> complete = complete_records(input);
    EXPECT_GT(complete.size(), 70'000u);
    expect_same(decoder_records(input), complete);
    expect_same(segment_records(input, 0, 2), complete);
  }
}

// A flow beside others, that fills the rows up to their limits and has them dropped.
class Dropper {
 public:
  explicit Dropper(std::shared_ptr<RowPool> pool) : pool_(std::move(pool)) {
    pool_->join(member_);
    thread_ = std::jthread([this](const std::stop_token& stop) {
      for (std::uint64_t ip = 1ull << 40; !stop.stop_requested(); ip += 64) drop_after(ip);
    });
  }
  ~Dropper() {
    thread_.request_stop();
    thread_.join();
    pool_->leave(member_);
  }
  int drops() const { return drops_; }

 private:
  void drop_after(std::uint64_t first_ip) {
    bool is_full = false;
    {
      std::lock_guard at_work(member_.at_work);
      std::uint64_t ip = first_ip;
      while (ip != first_ip + 64 && pool_->key_of(member_, ip, CodeMode::k64) != 0) ++ip;
      if (ip == first_ip + 64) return;
      is_full = pool_->is_full();
    }
    pool_->make_room();
    pool_->drop_if_full();
    drops_ += is_full;
  }

  std::shared_ptr<RowPool> pool_;
  RowPool::Member member_;
  std::atomic<int> drops_ = 0;
  std::jthread thread_;
};

// What the words of a stretch name may go between two blocks of it.
TEST(Segments, WhatAnotherFlowDropsMeanwhileCostsNoRecord) {
  RandomProgram program(11, 50);
  WalkOptions walk_options;
  walk_options.branches = 100'000;
  walk_options.asynchronous = walk_options.edges = walk_options.losses = false;
  SynthesisOptions options;
  options.psb_period_bytes = 0;
  auto trace = synthesize(random_walk(program, 11, walk_options).snapshot.records, *program.image(),
                          {}, options);
  ASSERT_TRUE(trace);
  PtInput input;
  input.code = program.image();
  input.trace = *trace;
  const std::vector<BranchRecord> complete = complete_records(input);
  auto pool = std::make_shared<RowPool>(input.config.first_epoch);
  const Dropper dropper(pool);
  SegmentDecoder decoder(input.trace, *input.code, input.config, pool);
  while (dropper.drops() == 0) {
    std::vector<BranchRecord> records = join_records({{decoder.decode({0, input.trace.size()})}});
    ASSERT_NO_FATAL_FAILURE(expect_same(records, complete));
  }
}

// Random programs and walks, in every way that they can be written.
TEST(Segments, AnySynthesisedTraceMakesTheRecordsOfTheCompleteDecoder) {
  constexpr SynthesisTiming kTimings[] = {SynthesisTiming::kNone, SynthesisTiming::kTsc,
                                          SynthesisTiming::kMtc, SynthesisTiming::kCyc};
  for (std::uint64_t seed = 0; seed < 32; ++seed) {
    SCOPED_TRACE(seed);
    RandomProgram program(seed, 2 + seed % 50);
    WalkOptions walk_options;
    walk_options.branches = 1000;
    walk_options.transactions = seed % 2 == 0;
    walk_options.asynchronous = walk_options.edges = walk_options.losses = seed % 3 != 0;
    walk_options.times = true;
    Walk walk = random_walk(program, seed, walk_options);
    SynthesisOptions options;
    options.timing = kTimings[seed % 4];
    options.return_compression = seed % 5 != 0;
    options.psb_period_bytes = seed % 7 * 100;
    options.pause_at_psb = seed % 8 == 0;
    auto trace = synthesize(walk.snapshot.records, *program.image(), {}, options);
    ASSERT_TRUE(trace);
    PtInput input;
    input.code = program.image();
    input.trace = *trace;
    input.config.timing = options.clocks;
    std::vector<BranchRecord> complete = complete_records(input);
    EXPECT_GT(complete.size(), 100u);
    expect_same(decoder_records(input), complete);
    expect_same(segment_records(input, input.trace.size(), 1), complete);
    expect_same(segment_records(input, 0, 2), complete);
    if (HasFailure()) return;
  }
}

// Code is not known in places, and here and there is no packet between two others.
PtInput with_losses(PtInput input, const RandomProgram& program, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  auto code = std::make_shared<CodeImage>(*input.code);
  for (const auto& [address, insn] : program.instructions()) {
    if (random() % 24 != 0) continue;
    EXPECT_TRUE(code->forget({address}, insn.size_bytes, {}));
  }
  input.code = code;
  const Bytes whole = std::exchange(input.trace, {});
  PacketReader packets(whole);
  bool in_psb = true;
  std::size_t begin = 0;
  for (Packet packet; packets.next(packet) == ReadStatus::kOk; begin = packets.offset()) {
    in_psb |= packet.kind == PacketKind::kPsb;
    if (!in_psb && random() % 64 == 0) input.trace.insert(input.trace.end(), {0x02, 0xff});
    in_psb &= packet.kind != PacketKind::kPsbEnd;
    const ByteSpan bytes = ByteSpan(whole).subspan(begin, packets.offset() - begin);
    input.trace.insert(input.trace.end(), bytes.begin(), bytes.end());
  }
  return input;
}

std::vector<BranchRecord> history_records(const PtInput& input, std::size_t least_bytes) {
  ThreadFrame frame;
  frame.code = input.code;
  auto source = std::make_shared<PtSegments>(nullptr, input.trace, input.code, input.config,
                                             PtSegmentsOptions{least_bytes, {}, {}});
  return History(frame, source, {}).snapshot().records;
}

// What is made at a seam has the time of one side.
std::vector<BranchRecord> timeless(std::vector<BranchRecord> records) {
  for (BranchRecord& record : records) record.time = 0;
  return records;
}

TEST(Segments, ALossIsOneRecordHoweverTheTraceIsCut) {
  for (std::uint64_t seed = 0; seed < 32; ++seed) {
    RandomProgram program(seed, 2 + seed % 50);
    WalkOptions walk_options;
    walk_options.branches = 1500;
    walk_options.transactions = seed % 4 == 0;
    walk_options.asynchronous = walk_options.edges = walk_options.losses = seed % 3 != 0;
    SynthesisOptions options;
    options.return_compression = seed % 5 != 0;
    options.psb_period_bytes = 100 + seed % 4 * 150;
    options.pause_at_psb = seed % 4 == 3;
    auto trace = synthesize(random_walk(program, seed, walk_options).snapshot.records,
                            *program.image(), {}, options);
    ASSERT_TRUE(trace);
    PtInput input;
    input.code = program.image();
    input.trace = *trace;
    input = with_losses(std::move(input), program, seed);
    const std::vector<BranchRecord> whole = timeless(complete_records(input));
    for (std::size_t least_bytes : {0, 300}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << least_bytes << " bytes");
      expect_same(timeless(history_records(input, least_bytes)), whole);
      expect_same(timeless(segment_records(input, least_bytes, 1)), whole);
      if (HasFailure()) return;
    }
  }
}

// PSB+ at 1000.
const Bytes kPsb{0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
                 0x02, 0x82, 0x99, 0x01, 0x7d, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x02, 0x23};

// je 1002; jmp rax: these packets between two PSBs.
PtInput outcomes_before_jumps(std::initializer_list<std::uint8_t> packets) {
  auto code = std::make_shared<CodeImage>();
  EXPECT_TRUE(code->add({0x1000}, Bytes{0x74, 0x00, 0xff, 0xe0}));
  PtInput input;
  input.code = code;
  input.trace = kPsb;
  input.trace.insert(input.trace.end(), packets);
  input.trace.insert(input.trace.end(), kPsb.begin(), kPsb.end());
  input.trace.insert(input.trace.end(), 32, 0);
  return input;
}

// The first byte of a CYC, then a PSB: read on, the PSB's first byte is the CYC's second.
TEST(Segments, APsbBehindACycThatWasCutOffIsFoundOnEitherPath) {
  // An outcome for the je, one that waits for the jump's TIP, and the CYC.
  const PtInput input = outcomes_before_jumps({0x0e, 0x9f});
  std::vector<BranchRecord> complete = complete_records(input);
  // Nothing was lost but the CYC: the flow goes on at the second PSB.
  bool goes_on = std::any_of(complete.begin(), complete.end(), [](const BranchRecord& r) {
    return r.kind == RecordKind::kGap && r.to == Address{0x1000};
  });
  EXPECT_TRUE(goes_on);
  expect_same(segment_records(input, input.trace.size(), 1), complete);
}

// Three outcomes, of which the second waits for a TIP and the third for another; but outcomes come.
TEST(Segments, OutcomesInPlaceOfASecondTipAreAnErrorOnEitherPath) {
  const PtInput input =
      outcomes_before_jumps({0x1e, 0x6d, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x06});
  std::vector<BranchRecord> complete = complete_records(input);
  bool is_error = std::any_of(complete.begin(), complete.end(),
                              [](const BranchRecord& r) { return r.kind == RecordKind::kGap; });
  EXPECT_TRUE(is_error);
  expect_same(segment_records(input, input.trace.size(), 1), complete);
}

// je over nothing, jmp rax; a pause of the tracing.
TEST(Segments, TheKernelsBranchesAreMarkedOnEitherPath) {
  constexpr Address kKernel{0xffffffff81000000}, kUser{0x1000};
  auto code = std::make_shared<CodeImage>();
  for (Address place : {kKernel, kUser})
    ASSERT_TRUE(code->add(place, Bytes{0x74, 0x00, 0xff, 0xe0}));
  PacketWriter out;
  out.psb();
  out.mode_exec(CodeMode::k64);
  out.fup(kUser);
  out.psbend();
  for (int i = 0; i < 20; ++i)
    for (Address place : {kKernel, kUser}) {
      out.tnt(true);
      out.tip(place);
      out.tnt(false);
      out.tip_pgd({0x5000});
      out.tip_pge(place);
    }
  for (int i = 0; i < 32; ++i) out.pad();
  PtInput input;
  input.code = code;
  input.trace = out.take();
  const std::vector<BranchRecord> complete = complete_records(input);
  EXPECT_TRUE(
      std::ranges::any_of(complete, [](const auto& r) { return r.from > kUser + 0x10000; }));
  for (const BranchRecord& record : complete)
    EXPECT_EQ((record.flags & kFlagKernel) != 0, record.from >= kKernel) << text(record);
  expect_same(segment_records(input, input.trace.size(), 1), complete);
}

// A loop that gets longer by an instruction each time that its code changes.
TEST(Segments, CodeThatChangedIsNotRunAsItWas) {
  constexpr std::uint32_t kEpochs = 8;
  auto code = std::make_shared<CodeImage>();
  PtInput input;
  PacketWriter out;
  out.psb();
  out.mode_exec(CodeMode::k64);
  out.fup({0x1000});
  out.psbend();
  for (std::uint32_t epoch = 0; epoch < kEpochs; ++epoch) {
    Bytes bytes(epoch, 0x90);
    bytes.insert(bytes.end(), {0x74, static_cast<std::uint8_t>(0xfe - epoch)});  // je 1000
    ASSERT_TRUE(code->add({0x1000}, std::move(bytes), Epoch{epoch}));
    if (epoch != 0) input.config.code_changes.push_back({out.size_bytes(), 0, Epoch{epoch}});
    for (int i = 0; i < 600; ++i) out.tnt(true);
  }
  for (int i = 0; i < 32; ++i) out.pad();
  input.code = code;
  input.trace = out.take();
  std::vector<BranchRecord> complete = complete_records(input);
  auto longest = [](const BranchRecord& r) { return r.insns == kEpochs; };
  EXPECT_GT(std::ranges::count_if(complete, longest), 500);
  expect_same(decoder_records(input), complete);
  expect_same(segment_records(input, input.trace.size(), 1), complete);
}

// A conditional, six calls, one inside the other, then a jump to code that is not traced, and back:
// again and again.
PtInput calls_out_of_a_filter(unsigned rounds) {
  constexpr std::uint64_t kBegin = 0x1000, kCalls = 6;
  Bytes bytes{0x75, 0x00};  // jne
  for (std::uint64_t i = 0; i < kCalls; ++i)
    bytes.insert(bytes.end(), {0x90, 0xe8, 1, 0, 0, 0, 0xc3});  // nop; call behind the ret; ret
  bytes.insert(bytes.end(), {0xe9, 0, 0x20, 0, 0});             // jmp
  auto code = std::make_shared<CodeImage>();
  PtInput input;
  Address outside = Address{kBegin} + bytes.size() + 0x2000;
  EXPECT_TRUE(code->add({kBegin}, std::move(bytes)));
  input.code = code;
  input.config.timing = {1, 64, 3, 32};
  PacketWriter out;
  out.psb();
  out.tsc(100000);
  out.cbr(32);
  out.mode_exec(CodeMode::k64);
  out.fup({kBegin});
  out.psbend();
  for (unsigned i = 0; i < rounds; ++i) {
    if (i % 3 == 0) out.cyc(i % 50 + 1);
    out.tnt(i % 7 == 0);
    out.tip_pgd(outside);
    out.tip_pge({kBegin});
  }
  for (int i = 0; i < 32; ++i) out.pad();
  input.trace = out.take();
  return input;
}

TEST(Segments, ManyCallsBeforeAnExitOfTheFilterStayOnTheFastPath) {
  constexpr unsigned kRounds = 2000;
  PtInput input = calls_out_of_a_filter(kRounds);
  std::vector<BranchRecord> complete = complete_records(input);
  EXPECT_GT(complete.size(), kRounds * 6);
  expect_same(decoder_records(input), complete);
  expect_same(segment_records(input, input.trace.size(), 1), complete);
  std::vector<Segment> segments = find_segments(input.trace, input.trace.size());
  ASSERT_EQ(segments.size(), 1u);
  SegmentDecoder decoder(input.trace, *input.code, input.config);
  // Records of the complete path would be kept as they are.
  EXPECT_LT(decoder.decode(segments.front()).size_bytes(), kRounds * sizeof(BranchRecord));
}

TEST(Segments, TimeNeverGoesBack) {
  for (const PtInput& input : inputs()) {
    std::uint64_t before = 0;
    for (const BranchRecord& record : segment_records(input, input.trace.size(), 1)) {
      ASSERT_GE(record.time, before) << input.name;
      before = record.time;
    }
  }
}

}  // namespace
}  // namespace tailtrace::pt
