// Records from anywhere over code from anywhere: synthesis ends, libipt accepts what it wrote and
// is never led along a branch that no record holds, and our decoder reads the same.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "decoder/code/code_reader.h"
#include "decoder/pt/decoder.h"
#include "decoder/pt/synthesis/synthesis.h"
#include "tests/fuzz/fuzz_driver.h"
#include "tests/support/libipt_walk.h"
#include "tests/support/random_program.h"

namespace tailtrace {
namespace {

constexpr std::size_t kHeader_bytes = 4;
constexpr unsigned kPrograms = 8;
constexpr std::size_t kMaxRecords = 400;

// An input: program, options, a byte of a hole in the code, unused; then records as they are.
struct Header {
  std::uint8_t program;
  std::uint8_t options;
  std::uint8_t hole;
  std::uint8_t unused;
};
static_assert(sizeof(Header) == kHeader_bytes);

const RandomProgram& program(unsigned number) {
  static std::vector<RandomProgram> programs = [] {
    std::vector<RandomProgram> all;
    for (unsigned i = 0; i < kPrograms; ++i) all.emplace_back(i, 3 + 4 * i);
    return all;
  }();
  return programs[number % kPrograms];
}

// The program's code without a few bytes in the middle, as where a page is missing.
const CodeImage& code_with_hole(unsigned number, std::uint8_t hole) {
  static std::map<std::pair<unsigned, unsigned>, CodeImage> made;
  auto [found, fresh] = made.try_emplace({number % kPrograms, hole});
  CodeImage& code = found->second;
  if (!fresh) return code;
  for (const auto& [address, insn] : program(number).instructions()) {
    if (hole != 0 && address % 251 == hole % 251) continue;
    Bytes bytes(insn.size_bytes);
    program(number).image()->read({address}, bytes);
    if (!code.add({address}, std::move(bytes))) std::abort();
  }
  return code;
}

void judge(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "synthesis: %s\n", what);
  std::abort();
}

// Every step that no event explains is straight on, or in the records.
void judge_path(const LibiptWalk& walk, const std::vector<BranchRecord>& records,
                const CodeImage& code) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> branches;
  for (const BranchRecord& record : records) branches.insert({record.from.value, record.to.value});
  std::set<std::size_t> events(walk.event_at.begin(), walk.event_at.end());
  CodeReader reader(code);
  for (std::size_t i = 1; i < walk.instructions.size(); ++i) {
    Address from = walk.instructions[i - 1];
    Address to = walk.instructions[i];
    if (events.contains(i) || reader.at(from)->next() == to) continue;
    judge(branches.contains({from.value, to.value}), "a branch that no record holds");
  }
}

class Instructions final : public pt::Sink {
 public:
  void instructions(std::span<const Instruction> run, const pt::RunState&) override {
    for (const Instruction& insn : run) seen.push_back(insn.address);
  }
  void event(const pt::Event&) override {}
  void gap(const pt::Gap&) override { ++gaps; }

  std::vector<Address> seen;
  int gaps = 0;
};

}  // namespace

std::vector<Bytes> fuzz_seeds() {
  std::vector<Bytes> seeds;
  for (std::uint8_t i = 0; i < 2 * kPrograms; ++i) {
    WalkOptions options;
    options.branches = 40;
    options.transactions = i % 2 == 0;
    options.times = true;
    Walk walk = random_walk(program(i), i, options);
    const auto& records = walk.snapshot.records;
    Bytes seed(kHeader_bytes + records.size() * sizeof(BranchRecord));
    Header header{i, static_cast<std::uint8_t>(i * 5), static_cast<std::uint8_t>(i / kPrograms), 0};
    std::memcpy(seed.data(), &header, sizeof header);
    std::memcpy(seed.data() + kHeader_bytes, records.data(), records.size() * sizeof(BranchRecord));
    seeds.push_back(std::move(seed));
  }
  return seeds;
}

void fuzz_one(ByteSpan input) {
  if (input.size() < kHeader_bytes) return;
  auto header = load<Header>(input);
  const CodeImage& code = code_with_hole(header.program, header.hole);
  ByteSpan rest = input.subspan(kHeader_bytes);
  std::vector<BranchRecord> records(std::min(rest.size() / sizeof(BranchRecord), kMaxRecords));
  if (!records.empty())
    std::memcpy(records.data(), rest.data(), records.size() * sizeof(BranchRecord));
  pt::SynthesisOptions options;
  options.return_compression = (header.options & 1) != 0;
  options.timing = static_cast<pt::SynthesisTiming>((header.options >> 5) & 3);
  options.pause_at_psb = (header.options & 2) != 0;
  options.psb_period_bytes = (header.options & 4) != 0 ? 1 : (header.options & 8) != 0 ? 64 : 0;
  options.newest_instructions = (header.options & 16) != 0 ? 100 : ~0ull;
  options.limit_bytes = 1 << 20;
  auto trace = pt::synthesize(records, code, {}, options);
  if (!trace) {
    judge(trace.error().code == ErrorCode::kUsage, "an error of another kind");
    return;
  }
  std::uint64_t most = 0;
  for (const BranchRecord& record : records) most += record.insns;
  LibiptWalk walk = walk_with_libipt(*trace, code, 10'000'000);
  judge(walk.errors.empty(), walk.errors.empty() ? "" : walk.errors.front().c_str());
  judge(walk.instructions.size() <= most, "more instructions than were recorded");
  judge_path(walk, records, code);
  Instructions ours;
  pt::make_flow_decoder(code, {})->decode(*trace, ours);
  judge(ours.gaps == 0 && ours.seen == walk.instructions, "our decoder reads it differently");
}

}  // namespace tailtrace
