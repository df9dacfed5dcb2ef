// Intel PT of real programs, written from recordings in every way that synthesis knows, and decoded
// again: by every way through our decoder, and by Intel's library. The judge is neither: it is what
// single-stepping the same program saw, instruction by instruction.
#include <gtest/gtest.h>

#include <fstream>

#include "decoder/pt/flow/flow.h"
#include "decoder/pt/segments/segments.h"
#include "decoder/pt/synthesis/synthesis.h"
#include "tests/support/libipt_walk.h"
#include "tests/support/qemu_recording.h"
#include "tests/support/qemu_steps.h"
#include "tests/support/temp_folder.h"
#include "tests/support/unfold.h"

namespace tailtrace::pt {
namespace {

struct Program {
  std::vector<std::string> command;
  std::vector<std::string> environment = kTestEnvironment;
};

// The newest part of what a program did, as it was recorded and as it was executed.
struct Run {
  ThreadSnapshot snapshot;
  Addresses executed;
};

Result<Run> run(const Program& program) {
  auto steps = step_under_qemu(program.command, program.environment);
  if (!steps) return fail(std::move(steps.error()));
  QemuOptions options = test_options(program.command);
  options.environment = program.environment;
  options.ring_records = 1 << 15;
  auto recorded = record_to_end(options);
  if (!recorded) return fail(std::move(recorded.error()));
  Run result;
  result.snapshot = std::move(recorded->processes.at(0).threads.at(0).snapshot);
  result.executed = without_iterations(steps->threads.at(0), *result.snapshot.code);
  // The recording has no clock; the count of instructions is one.
  std::uint64_t time = 1, insns = 0;
  for (BranchRecord& record : result.snapshot.records) {
    record.time = time += record.insns + 1;
    insns += record.insns;
  }
  // The run that ends with the first record is not known.
  insns -= result.snapshot.records.at(0).insns;
  if (insns > result.executed.size()) return fail(ErrorCode::kBadInput, "more than was executed");
  result.executed.erase(result.executed.begin(),
                        result.executed.end() - static_cast<std::ptrdiff_t>(insns));
  return result;
}

struct Way {
  const char* name;
  SynthesisOptions options;
};

// Each option of synthesis at least once, alone and with others.
std::vector<Way> ways() {
  std::vector<Way> all = {{"as it comes", {}}};
  auto add = [&](const char* name) -> SynthesisOptions& {
    all.push_back({name, {}});
    return all.back().options;
  };
  add("without return compression").return_compression = false;
  add("one PSB").psb_period_bytes = 0;
  add("a PSB every 100 bytes").psb_period_bytes = 100;
  add("paused at PSBs").pause_at_psb = true;
  add("TSC").timing = SynthesisTiming::kTsc;
  add("MTC").timing = SynthesisTiming::kMtc;
  SynthesisOptions& cycles = add("CYC, without return compression, PSBs often");
  cycles.timing = SynthesisTiming::kCyc;
  cycles.return_compression = false;
  cycles.psb_period_bytes = 512;
  return all;
}

struct Listing : Sink {
  Addresses executed;
  std::size_t gaps = 0;

  void instructions(std::span<const Instruction> run, const RunState&) override {
    for (const Instruction& insn : run) executed.push_back(insn.address.value);
  }
  void event(const Event&) override {}
  void gap(const Gap&) override { ++gaps; }
};

void expect_records(std::vector<BranchRecord> records, const Run& run) {
  ThreadSnapshot snapshot = run.snapshot;
  snapshot.records = std::move(records);
  Unfolded history = unfold(snapshot, false);
  EXPECT_EQ(history.problem, "");
  EXPECT_TRUE(is_equal(history.executed, run.executed));
}

void expect_flow(const Bytes& trace, const Run& run, const DecoderConfig& config) {
  const CodeImage& code = *run.snapshot.code;
  Listing complete, listing;
  FlowWalker(trace, code, config, complete).run(0, trace.size());
  EXPECT_TRUE(is_equal(complete.executed, run.executed)) << "complete path";
  auto decoder = make_flow_decoder(code, config);
  decoder->decode(trace, listing);
  EXPECT_TRUE(is_equal(listing.executed, run.executed)) << "instructions";
  EXPECT_EQ(listing.gaps, 0u);
  RecordSink records;
  decoder->decode(trace, records);
  records.finish();
  expect_records(records.drain(), run);
  auto paths = decode_segments(trace, find_segments(trace, 1000), code, config, 2);
  expect_records(join_records(paths), run);
}

void expect_libipt(const Bytes& trace, const Run& run) {
  LibiptWalk walk = walk_with_libipt(trace, *run.snapshot.code);
  EXPECT_EQ(walk.errors, std::vector<std::string>{});
  Addresses executed;
  for (Address address : walk.instructions) executed.push_back(address.value);
  EXPECT_TRUE(is_equal(executed, run.executed)) << "libipt";
}

void expect_every_way(const Program& program) {
  auto done = run(program);
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_GT(done->executed.size(), 10000u);
  for (const Way& way : ways()) {
    SCOPED_TRACE(way.name);
    auto trace = synthesize(done->snapshot.records, *done->snapshot.code,
                            done->snapshot.first_epoch, way.options);
    ASSERT_TRUE(trace) << trace.error().to_string();
    DecoderConfig config;
    config.timing = way.options.clocks;
    config.first_epoch = done->snapshot.code->newest();
    expect_flow(*trace, *done, config);
    expect_libipt(*trace, *done);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(PtTruth, ACompressor) {
  TempFolder folder;
  std::string text;
  for (int i = 0; i < 300; ++i) text += std::to_string(i * 7919 % 10007) + "\n";
  std::ofstream(folder.file("text")) << text;
  expect_every_way({{"/usr/bin/gzip", "-c", folder.file("text")}});
}

TEST(PtTruth, AnInterpreter) {
  const char* text = "my %h; $h{$_ % 7} += $_ for 1 .. 40; print join ',', sort keys %h;";
  expect_every_way({{"/usr/bin/perl", "-e", text}, {"PERL_HASH_SEED=0", "PERL_PERTURB_KEYS=0"}});
}

TEST(PtTruth, CppWithExceptions) { expect_every_way({{built_program("exceptions")}}); }

TEST(PtTruth, DeepRecursion) { expect_every_way({{built_program("recursion")}}); }

TEST(PtTruth, StringInstructions) { expect_every_way({{built_program("string_instructions")}}); }

}  // namespace
}  // namespace tailtrace::pt
