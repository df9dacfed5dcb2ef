// Speed of the Intel PT decoders, all on the same bytes in one run, on one core.
//
//   pt_bench [--rounds=N] [--prefix-bytes=N] [--peers=no] [--threads=N] [--adversarial]
//            [--decoding-only] [--records=N] [INPUT...] [-- PROGRAM ARG...]
//
// A PROGRAM is recorded under qemu; its newest --records branches (16 Mi) are the input.
// --decoding-only leaves out what takes the whole trace.
// --adversarial makes inputs of its own: branches that never come again, and PSBs every 2 KiB.
//
// An INPUT is a trace bundle (.../trace.json) or the prefix of a generated trace. What is compared
// runs in turn, --rounds times, and medians are printed. Times are CPU times of the thread, so that
// other programs disturb little; only several threads are measured by the wall. What takes less
// than 50 ms is repeated for that long, whoever it is. One line each:
//
//   INPUT  DECODER  seconds  ns/branch  M instructions/s  how often faster than libipt's decoders
//
// Peers are slow, so decoders are compared on the first --prefix-bytes (16 MiB); what has no peer
// takes the whole trace.
#include <fmt/core.h>
#include <intel-pt.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "decoder/pt/flow/flow.h"
#include "decoder/pt/segments/segments.h"
#include "decoder/pt/synthesis/synthesis.h"
#include "tests/support/adversarial_traces.h"
#include "tests/support/generated_truth.h"
#include "tests/support/pt_inputs.h"
#include "tests/support/recorded_trace.h"
#include "tests/support/temp_folder.h"
#include "tests/support/usage.h"

namespace tailtrace::pt {
namespace {

double cpu_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

struct Work {
  std::uint64_t insns = 0;
  std::uint64_t branches = 0;  // 0: not counted
};

struct Measurement {
  double seconds = 0;
  Work work;
};

// What is short is run again and again, the same for everybody: else a trace of a millisecond tells
// what the one before left in the processor's caches.
Measurement measure(const std::function<Work()>& run) {
  constexpr double kLeast_seconds = 0.05;
  const double begin = cpu_seconds();
  double seconds = 0;
  Work work;
  for (int runs = 1; seconds * (runs - 1) < kLeast_seconds; ++runs) {
    work = run();
    seconds = (cpu_seconds() - begin) / runs;
  }
  return {seconds, work};
}

// --- libipt ----------------------------------------------------------------------------------

pt_config config_of(const PtInput& input, ByteSpan trace) {
  pt_config config;
  pt_config_init(&config);
  config.begin = const_cast<std::uint8_t*>(trace.data());
  config.end = config.begin + trace.size();
  const Cpu& cpu = input.config.cpu;
  if (cpu.family != 0) {
    config.cpu = {pcv_intel, cpu.family, cpu.model, cpu.stepping};
    pt_cpu_errata(&config.errata, &config.cpu);
  }
  config.cpuid_0x15_eax = input.config.timing.cpuid_15_eax;
  config.cpuid_0x15_ebx = input.config.timing.cpuid_15_ebx;
  config.mtc_freq = input.config.timing.mtc_period;
  config.nom_freq = input.config.timing.nominal_ratio;
  return config;
}

// Sections out of files, with a cache, as its documentation recommends.
struct PeerImage {
  pt_image_section_cache* cache = pt_iscache_alloc(nullptr);
  pt_image* image = pt_image_alloc(nullptr);

  explicit PeerImage(const PtInput& input) {
    for (const FileSection& file : input.files) {
      int isid = pt_iscache_add_file(cache, file.path.c_str(), file.offset_bytes, file.size_bytes,
                                     file.address);
      if (isid > 0) pt_image_add_cached(image, cache, isid, nullptr);
    }
  }
  ~PeerImage() {
    pt_image_free(image);
    pt_iscache_free(cache);
  }
};

Work run_block_decoder(const PtInput& input, ByteSpan trace) {
  PeerImage image(input);
  pt_config config = config_of(input, trace);
  pt_block_decoder* decoder = pt_blk_alloc_decoder(&config);
  pt_blk_set_image(decoder, image.image);
  Work work;
  for (;;) {
    int status = pt_blk_sync_forward(decoder);
    if (status < 0) break;
    for (;;) {
      while (status >= 0 && (status & pts_event_pending) != 0) {
        pt_event event;
        status = pt_blk_event(decoder, &event, sizeof event);
      }
      if (status < 0 || (status & pts_eos) != 0) break;
      pt_block block{};
      status = pt_blk_next(decoder, &block, sizeof block);
      work.insns += block.ninsn;
      if (status < 0) break;
    }
    if (status >= 0 || status == -pte_eos) break;
  }
  pt_blk_free_decoder(decoder);
  return work;
}

Work run_insn_decoder(const PtInput& input, ByteSpan trace) {
  PeerImage image(input);
  pt_config config = config_of(input, trace);
  pt_insn_decoder* decoder = pt_insn_alloc_decoder(&config);
  pt_insn_set_image(decoder, image.image);
  Work work;
  for (;;) {
    int status = pt_insn_sync_forward(decoder);
    if (status < 0) break;
    for (;;) {
      while (status >= 0 && (status & pts_event_pending) != 0) {
        pt_event event;
        status = pt_insn_event(decoder, &event, sizeof event);
      }
      if (status < 0 || (status & pts_eos) != 0) break;
      pt_insn insn{};
      status = pt_insn_next(decoder, &insn, sizeof insn);
      if (insn.iclass != ptic_error) ++work.insns;
      if (status < 0) break;
    }
    if (status >= 0 || status == -pte_eos) break;
  }
  pt_insn_free_decoder(decoder);
  return work;
}

// --- flow ------------------------------------------------------------------------------------

class CountingSink final : public PathSink {
 public:
  Work work;

  void instructions(std::span<const Instruction> run, const RunState&) override {
    work.insns += run.size();
    for (const Instruction& insn : run) work.branches += insn.is_branch();
  }
  void event(const Event&) override {}
  void gap(const Gap&) override {}
  CompactPath& begin_path(const PathStart&, const std::shared_ptr<const EffectBook>&) override {
    // A history keeps the words of a segment and goes on with the next.
    constexpr std::size_t kSegmentWords = 1u << 16;
    if (path_.words.size() > kSegmentWords) path_.clear();
    return path_;
  }
  void end_path(const PathEnd& end) override {
    const PathTotals& totals = end.totals;
    work.insns += totals.insns;
    work.branches += totals.branches;
  }

 private:
  CompactPath path_;
};

Work run_flow(const PtInput& input, ByteSpan trace, FastFlow& fast) {
  CountingSink sink;
  FlowWalker(trace, *input.code, input.config, sink, fast).run(0, trace.size());
  return sink.work;
}

Work run_reference(const PtInput& input, ByteSpan trace) {
  CountingSink sink;
  FlowWalker(trace, *input.code, input.config, static_cast<Sink&>(sink)).run(0, trace.size());
  return sink.work;
}

// Records of whole segments, one after the other, into the same memory.
Work run_expansion(std::span<const SegmentPath> paths, std::vector<BranchRecord>& out) {
  Work work;
  for (const SegmentPath& path : paths) {
    if (out.size() < path.room()) out.resize(path.room());
    work.insns += path.totals().insns;
    work.branches += path.records(std::span(out));
  }
  return work;
}

// --- The table -------------------------------------------------------------------------------

// Runs of the same thing at different times; the machine may be busy at some of them.
struct Series {
  std::vector<double> seconds;
  Work work;

  void take(const std::function<Work()>& run) {
    Measurement m = measure(run);
    seconds.push_back(m.seconds);
    work = m.work;
  }
  double median() const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

struct Options {
  std::size_t prefix_bytes = 16u << 20;
  bool with_peers = true;
  bool adversarial = false;
  bool decoding_only = false;
  std::uint64_t limit_records = 1u << 24;
  int rounds = 3;
  unsigned threads = 2;
};

void print(const PtInput& input, const char* what, const Series& series, std::uint64_t branches,
           const Series& block, const Series& insn) {
  std::string ratios;
  if (!block.seconds.empty())
    ratios += fmt::format("  {:6.1f}x block", block.median() / series.median());
  if (!insn.seconds.empty())
    ratios += fmt::format("  {:6.1f}x insn", insn.median() / series.median());
  fmt::print("{:<12} {:<24} {:9.4f} s {:8.2f} ns/branch {:9.1f} M insn/s{}\n", input.name, what,
             series.median(), series.median() * 1e9 / static_cast<double>(branches),
             static_cast<double>(series.work.insns) / series.median() * 1e-6, ratios);
}

// Every decoder on the same bytes, in turn.
void bench_decoding(const PtInput& input, ByteSpan trace, const Options& options) {
  Series block, insn, complete, cold, warm;
  FastFlow kept(*input.code, input.config);
  run_flow(input, trace, kept);
  for (int round = 0; round < options.rounds; ++round) {
    warm.take([&] { return run_flow(input, trace, kept); });
    cold.take([&] {
      FastFlow fresh(*input.code, input.config);
      return run_flow(input, trace, fresh);
    });
    if (!options.with_peers) continue;
    block.take([&] { return run_block_decoder(input, trace); });
    insn.take([&] { return run_insn_decoder(input, trace); });
    complete.take([&] { return run_reference(input, trace); });
  }
  std::uint64_t branches = warm.work.branches;
  fmt::print("{}: {} of {} bytes, {} branches, {} instructions, medians of {}\n", input.name,
             trace.size(), input.trace.size(), branches, warm.work.insns, options.rounds);
  if (options.with_peers) {
    print(input, "libipt insn", insn, branches, {}, {});
    print(input, "libipt block", block, branches, {}, {});
    print(input, "flow, complete path only", complete, branches, block, insn);
    if (block.work.insns != warm.work.insns || insn.work.insns != warm.work.insns)
      fmt::print("{:<12} DIFFERS: libipt has {} and {} instructions\n", input.name, insn.work.insns,
                 block.work.insns);
  }
  print(input, "flow, cold", cold, branches, block, insn);
  print(input, "flow, warm", warm, branches, block, insn);
}

double wall_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Several threads at once; wall time, in turn with one thread.
void bench_threads(const PtInput& input, const Options& options) {
  constexpr std::size_t kPart_bytes = 1u << 17;
  std::vector<Segment> segments = find_segments(input.trace, kPart_bytes);
  std::vector<double> speedups;
  auto timed = [&](unsigned threads) {
    const double begin = wall_seconds();
    const auto paths = decode_segments(input.trace, segments, *input.code, input.config, threads);
    return wall_seconds() - begin;
  };
  timed(1);
  for (int round = 0; round < options.rounds; ++round) {
    double one = timed(1);
    speedups.push_back(one / timed(options.threads));
  }
  std::sort(speedups.begin(), speedups.end());
  fmt::print("{:<12} {} threads: {:.2f}x one thread (median of {}, best {:.2f}x), wall time\n",
             input.name, options.threads, speedups[speedups.size() / 2], options.rounds,
             speedups.back());
}

constexpr std::size_t kSegment_bytes = 1u << 14;

// The whole trace in segments: decoding to paths, counting, expanding to records.
void bench_segments(const PtInput& input, const Options& options) {
  SegmentDecoder decoder(input.trace, *input.code, input.config);
  std::vector<SegmentPath> paths;
  std::vector<BranchRecord> records;
  Series decoding, expansion;
  std::size_t size_bytes = 0;
  for (int round = 0; round < options.rounds; ++round) {
    decoding.take([&] {
      paths.clear();
      Work work;
      for (const Segment& segment : find_segments(input.trace, kSegment_bytes)) {
        paths.push_back(decoder.decode(segment));
        work.insns += paths.back().totals().insns;
        work.branches += paths.back().totals().branches;
      }
      return work;
    });
    expansion.take([&] { return run_expansion(paths, records); });
  }
  for (const SegmentPath& path : paths) size_bytes += path.size_bytes();
  print(input, "segments to paths", decoding, decoding.work.branches, {}, {});
  fmt::print("{:<12} paths: {:.3f} bytes an instruction, {:.3f} a branch\n", input.name,
             static_cast<double>(size_bytes) / static_cast<double>(decoding.work.insns),
             static_cast<double>(size_bytes) / static_cast<double>(decoding.work.branches));
  fmt::print("{:<12} paths to records: {:.1f} M records/s ({} records)\n", input.name,
             static_cast<double>(expansion.work.branches) / expansion.median() * 1e-6,
             expansion.work.branches);
}

// Records of the newest part, to PT again.
void bench_synthesis(const PtInput& input, const Options& options) {
  std::vector<Segment> segments = find_segments(input.trace, options.prefix_bytes);
  segments.resize(std::min<std::size_t>(segments.size(), 1));
  std::vector<SegmentPath> paths =
      decode_segments(input.trace, segments, *input.code, input.config, 1);
  std::vector<BranchRecord> records = join_records(paths);
  Series series;
  std::size_t size_bytes = 0;
  for (int round = 0; round < options.rounds; ++round)
    series.take([&] {
      Result<Bytes> trace = synthesize(records, *input.code, {}, {});
      size_bytes = trace ? trace->size() : 0;
      return Work{0, records.size()};
    });
  fmt::print("{:<12} synthesis: {:.1f} M records/s ({} records, {} bytes)\n", input.name,
             static_cast<double>(records.size()) / series.median() * 1e-6, records.size(),
             size_bytes);
}

void bench(const PtInput& input, const Options& options) {
  ByteSpan whole = input.trace;
  bench_decoding(input, whole.first(std::min(options.prefix_bytes, whole.size())), options);
  if (options.decoding_only) return;
  bench_segments(input, options);
  bench_threads(input, options);
  bench_synthesis(input, options);
}

std::string machine() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

bool take_option(const std::string& arg, Options& options) {
  auto value = [&](const char* name) -> const char* {
    std::string prefix = std::string(name) + "=";
    return arg.starts_with(prefix) ? arg.c_str() + prefix.size() : nullptr;
  };
  if (arg == "--peers=no")
    options.with_peers = false;
  else if (arg == "--adversarial")
    options.adversarial = true;
  else if (arg == "--decoding-only")
    options.decoding_only = true;
  else if (const char* bytes = value("--prefix-bytes"))
    options.prefix_bytes = std::strtoull(bytes, nullptr, 0);
  else if (const char* rounds = value("--rounds"))
    options.rounds = std::max(1, std::atoi(rounds));
  else if (const char* records = value("--records"))
    options.limit_records = std::max(1ull, std::strtoull(records, nullptr, 0));
  else if (const char* threads = value("--threads"))
    options.threads = static_cast<unsigned>(std::max(1, std::atoi(threads)));
  else
    return false;
  return true;
}

// False: the trace was decoded to something else than what was executed.
bool print_truth(const std::string& prefix, const PtInput& input) {
  std::optional<GeneratedTruth> truth = check_generated(prefix, input);
  if (!truth) return true;
  if (truth->problem.empty())
    fmt::print("{:<12} exact: all {} blocks that were executed\n", input.name, truth->blocks);
  else
    fmt::print("{:<12} WRONG: {}\n", input.name, truth->problem);
  return truth->problem.empty();
}

int bench_adversarial(const Options& options) {
  constexpr std::uint64_t kBranches = 2'000'000;
  TempFolder folder;
  Result<std::vector<PtInput>> inputs = adversarial_traces(folder.path(), kBranches);
  if (!inputs) fmt::print("{}\n", inputs.error().to_string());
  if (!inputs) return 1;
  for (const PtInput& input : *inputs) bench_decoding(input, input.trace, options);
  return 0;
}

int bench_program(const std::vector<std::string>& program, const Options& options) {
  TempFolder folder;
  Result<PtInput> input = record_as_pt(program, options.limit_records, folder.file("code"));
  if (!input) fmt::print("{}\n", input.error().to_string());
  if (!input) return 1;
  bench(*input, options);
  return 0;
}

constexpr char kUsage[] =
    "pt_bench [--rounds=N] [--prefix-bytes=N] [--peers=no] [--threads=N] [--adversarial] "
    "[--decoding-only] [--records=N] [INPUT...] [-- PROGRAM ARG...]";

int run(int argc, char** argv) {
  if (shows_usage(argc, argv, kUsage)) return 0;
  Options options;
  fmt::print("machine: {}\n", machine());
  int done = 0;
  for (int i = 1; i < argc; ++i) {
    std::string arg = argv[i];
    if (take_option(arg, options)) continue;
    if (arg == "--" && i + 1 < argc) return bench_program({argv + i + 1, argv + argc}, options);
    Result<PtInput> input = arg.ends_with(".json") ? load_trace_json(arg) : load_generated(arg);
    if (!input) {
      fmt::print("{}\n", input.error().to_string());
      return 1;
    }
    bench(*input, options);
    if (!options.decoding_only && !print_truth(arg, *input)) return 1;
    ++done;
  }
  if (options.adversarial) return bench_adversarial(options);
  if (done == 0) fmt::print("usage: {}\n", kUsage);
  return done == 0 ? 2 : 0;
}

}  // namespace
}  // namespace tailtrace::pt

int main(int argc, char** argv) { return tailtrace::pt::run(argc, argv); }
