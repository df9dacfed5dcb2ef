// Speed of the Intel PT decoders, all on the same bytes in one run, on one core.
//
//   pt_bench [--prefix-bytes=N] [--peers=no] INPUT...
//
// An INPUT is a trace bundle (.../trace.json) or the prefix of a generated trace. Times are CPU
// times of the thread, so that other programs disturb little. One line per measurement:
//
//   INPUT  DECODER  seconds  ns/branch  M instructions/s  how often faster than libipt's decoders
//
// Peers are slow: they, and "flow" beside them, decode the first --prefix-bytes only (16 MiB);
// "flow, whole" decodes all.
#include <fmt/core.h>
#include <intel-pt.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>

#include "decoder/pt/flow_fast.h"
#include "tests/support/pt_inputs.h"

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

Measurement measure(const std::function<Work()>& run) {
  double begin = cpu_seconds();
  Work work = run();
  return {cpu_seconds() - begin, work};
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
  PathWords& begin_path(Address, std::size_t, const std::shared_ptr<const EffectBook>&) override {
    // A history keeps the words of a segment and goes on with the next.
    constexpr std::size_t kSegmentWords = 1u << 16;
    if (words_.size() > kSegmentWords) words_.clear();
    return words_;
  }
  void end_path(Address, const PathTotals& totals) override {
    work.insns += totals.insns;
    work.branches += totals.branches;
  }

 private:
  PathWords words_;
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

// --- The table -------------------------------------------------------------------------------

struct Peers {
  double block_seconds = 0, insn_seconds = 0;
};

void print(const PtInput& input, const char* decoder, const Measurement& m, std::uint64_t branches,
           const Peers& peers) {
  std::string ratios;
  if (peers.block_seconds != 0)
    ratios += fmt::format("  {:6.1f}x block", peers.block_seconds / m.seconds);
  if (peers.insn_seconds != 0)
    ratios += fmt::format("  {:6.1f}x insn", peers.insn_seconds / m.seconds);
  fmt::print("{:<12} {:<24} {:9.4f} s {:8.2f} ns/branch {:9.1f} M insn/s{}\n", input.name, decoder,
             m.seconds, m.seconds * 1e9 / static_cast<double>(branches),
             static_cast<double>(m.work.insns) / m.seconds * 1e-6, ratios);
}

void bench(const PtInput& input, std::size_t prefix_bytes, bool with_peers) {
  ByteSpan whole = input.trace;
  ByteSpan prefix = whole.first(std::min(prefix_bytes, whole.size()));
  FastFlow fast(*input.code, input.config);
  Measurement cold = measure([&] { return run_flow(input, prefix, fast); });
  Measurement warm = measure([&] { return run_flow(input, prefix, fast); });
  std::uint64_t branches = cold.work.branches;
  fmt::print("{}: {} bytes, of which {} for the peers: {} branches, {} instructions\n", input.name,
             whole.size(), prefix.size(), branches, cold.work.insns);
  Peers peers;
  if (with_peers) {
    Measurement block = measure([&] { return run_block_decoder(input, prefix); });
    Measurement insn = measure([&] { return run_insn_decoder(input, prefix); });
    print(input, "libipt insn", insn, branches, {});
    print(input, "libipt block", block, branches, {});
    peers = {block.seconds, insn.seconds};
    if (block.work.insns != cold.work.insns || insn.work.insns != cold.work.insns)
      fmt::print("{:<12} DIFFERS: libipt has {} and {} instructions\n", input.name, insn.work.insns,
                 block.work.insns);
  }
  print(input, "flow, complete path only", measure([&] { return run_reference(input, prefix); }),
        branches, peers);
  print(input, "flow, cold", cold, branches, peers);
  print(input, "flow, warm", warm, branches, peers);
  Measurement all = measure([&] {
    FastFlow fresh(*input.code, input.config);
    return run_flow(input, whole, fresh);
  });
  print(input, "flow, whole, cold", all, all.work.branches, {});
  Measurement again = measure([&] { return run_flow(input, whole, fast); });
  print(input, "flow, whole, warm", again, again.work.branches, {});
}

std::string machine() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

int run(int argc, char** argv) {
  std::size_t prefix_bytes = 16u << 20;
  bool with_peers = true;
  fmt::print("machine: {}\n", machine());
  int done = 0;
  for (int i = 1; i < argc; ++i) {
    std::string arg = argv[i];
    if (arg.starts_with("--prefix-bytes=")) {
      prefix_bytes = std::strtoull(arg.c_str() + 15, nullptr, 0);
      continue;
    }
    if (arg == "--peers=no") {
      with_peers = false;
      continue;
    }
    Result<PtInput> input = arg.ends_with(".json") ? load_trace_json(arg) : load_generated(arg);
    if (!input) {
      fmt::print("{}\n", input.error().to_string());
      return 1;
    }
    bench(*input, prefix_bytes, with_peers);
    ++done;
  }
  if (done == 0) fmt::print("usage: pt_bench [--prefix-bytes=N] [--peers=no] INPUT...\n");
  return done == 0 ? 2 : 0;
}

}  // namespace
}  // namespace tailtrace::pt

int main(int argc, char** argv) { return tailtrace::pt::run(argc, argv); }
