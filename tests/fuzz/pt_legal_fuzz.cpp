// The flow decoder against Intel's, and its fast path against its complete path, on traces that a
// processor could have sent: packets of every kind in places where they may stand (legal_trace.h).
//
//   pt_legal_fuzz [--seconds=N] [--runs=N] [--seed=N] [FILE...]
//
// An input decides what code there is and what happens to it. Neither decoder may find anything
// wrong, and they must agree to the letter, with one exception on purpose: the mode that comes with
// a far branch holds behind the branch; libipt lets it hold as soon as code runs through the
// branch's target.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <random>
#include <string>

#include "decoder/pt/event_text.h"
#include "decoder/pt/flow/flow.h"
#include "tests/fuzz/fuzz_driver.h"
#include "tests/support/legal_trace.h"

namespace tailtrace {
namespace {

using namespace pt;

// What `tailtrace decode` prints.
struct Story : Sink {
  std::vector<std::string> lines;
  EventText text{true};
  std::optional<std::size_t> first_gap;

  void instructions(std::span<const Instruction> run, const RunState& state) override {
    for (const Instruction& insn : run)
      lines.push_back(
          fmt::format("{}{:016x}", state.in_transaction ? "? " : "", insn.address.value));
  }
  void event(const Event& event) override {
    std::string line = event.kind == EventKind::kEndOfTrace ? "[end of trace]" : text.of(event);
    if (!line.empty()) lines.push_back(std::move(line));
  }
  void gap(const Gap& gap) override {
    if (!first_gap) first_gap = lines.size();
    lines.push_back(text.of(gap));
  }
};

// Processors with errata, and one without.
Cpu pick_cpu(Choices& choices) {
  static constexpr Cpu kCpus[] = {{},           {6, 0x4e, 3}, {6, 0x5c, 9},
                                  {6, 0x3d, 4}, {6, 0x8f, 1}, {6, 0x9a, 1}};
  return kCpus[choices.below(std::size(kCpus))];
}

struct Case {
  std::vector<LegalProgram::Region> regions;
  Bytes trace;
};

std::string line_at(const Story& story, std::size_t i) {
  return i < story.lines.size() ? story.lines[i] : "-";
}

void print_hex(const std::string& name, ByteSpan bytes) {
  std::fprintf(stderr, "%s: %s\n", name.c_str(), to_hex(bytes).c_str());
}

[[noreturn]] void report(const char* what, const Case& subject, const Story& a, const Story& b,
                         std::size_t at) {
  std::fprintf(stderr, "%s differ at item %zu\n", what, at);
  for (std::size_t i = at < 8 ? 0 : at - 8; i < at + 4; ++i)
    std::fprintf(stderr, "  %-60s | %s\n", line_at(a, i).c_str(), line_at(b, i).c_str());
  for (const LegalProgram::Region& region : subject.regions)
    print_hex(fmt::format("code at {:x}", region.base), region.bytes);
  print_hex("trace", subject.trace);
  std::abort();
}

// Where they differ first; nothing where they do not.
std::optional<std::size_t> difference(const Story& a, const Story& b) {
  auto [in_a, in_b] = std::ranges::mismatch(a.lines, b.lines);
  if (in_a == a.lines.end() && in_b == b.lines.end()) return std::nullopt;
  return static_cast<std::size_t>(in_a - a.lines.begin());
}

void compare_paths(const Case& subject, const Story& fast, const Story& complete) {
  if (auto at = difference(fast, complete))
    report("the fast and the complete path", subject, fast, complete, *at);
}

void compare_with_libipt(const Case& subject, const Story& flow, const Story& libipt) {
  std::optional<std::size_t> at = difference(flow, libipt);
  bool on_purpose = at && (line_at(flow, *at).starts_with("[exec mode") ||
                           line_at(libipt, *at).starts_with("[exec mode"));
  if (on_purpose) return;
  if (at) report("flow and libipt", subject, flow, libipt, *at);
  if (flow.first_gap)
    report("a legal trace and what was found", subject, flow, libipt, *flow.first_gap);
}

}  // namespace

std::vector<Bytes> fuzz_seeds() {
  std::vector<Bytes> seeds;
  std::mt19937 random(1);
  for (std::size_t seed = 0; seed < 256; ++seed) {
    Bytes bytes(400 + 16 * seed);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    seeds.push_back(std::move(bytes));
  }
  return seeds;
}

void fuzz_one(ByteSpan input) {
  Choices choices(input);
  DecoderConfig config;
  config.timing = {1, 64, 3, 32};
  config.cpu = pick_cpu(choices);
  config.errata = errata_of(config.cpu);
  LegalProgram program(choices);
  Case subject{program.regions(), make_legal_trace(choices, program, config.errata)};
  CodeImage code;
  for (const LegalProgram::Region& region : subject.regions)
    if (!code.add({region.base}, region.bytes)) return;
  Story flow, complete, libipt;
  make_flow_decoder(code, config)->decode(subject.trace, flow);
  FlowWalker(subject.trace, code, config, complete).run(0, subject.trace.size());
  make_libipt_decoder(code, config)->decode(subject.trace, libipt);
  compare_paths(subject, flow, complete);
  compare_with_libipt(subject, flow, libipt);
}

}  // namespace tailtrace
