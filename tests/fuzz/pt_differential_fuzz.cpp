// The flow decoder against Intel's, and its fast path against its complete path, on programs and
// traces that are made up from the input's bytes.
//
//   pt_differential_fuzz [--seconds=N] [--runs=N] [--seed=N] [FILE...]
//
// An input is a recipe: its first bytes choose instructions of a small program, the others packets,
// most of which fit the program. Intel's decoder reads ahead, so from the first thing that it
// cannot decode on the two may differ: ours loses less. Up to there they must agree to the letter,
// but for what differs on purpose:
//
//   * A return that does not match its call. SDM, "RET compression": the RET pops the processor's
//     entry. libipt 2.0.5 leaves it and goes to a wrong place at the next compressed return.
//     The recipes have no uncompressed return with a call on the stack.
//   * Bytes that are no instruction of the program, which a wild target in the middle of one leads
//     to: libipt measures lengths and lets what always faults (UD0) pass, and other lengths at
//     that.
//   * An MWAIT whose EXSTOP is lost with an overflow, which libipt 2.0.5 loses, too.
//   * Where the flow was when data was lost (Event::to of kOverflow), which libipt does not say.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>

#include "decoder/pt/flow/flow.h"
#include "decoder/pt/packets/packet_reader.h"
#include "decoder/pt/segments/segments.h"
#include "tests/fuzz/fuzz_driver.h"

namespace tailtrace {
namespace {

using namespace pt;

constexpr std::uint64_t kBase = 0x401000;

// Bytes of the recipe, then zeros.
class Recipe {
 public:
  explicit Recipe(ByteSpan bytes) : bytes_(bytes) {}
  bool done() const { return at_ >= bytes_.size(); }
  unsigned next() { return done() ? 0 : bytes_[at_++]; }

 private:
  ByteSpan bytes_;
  std::size_t at_ = 0;
};

// --- A program -------------------------------------------------------------------------------

// The offsets at which its instructions begin.
using Starts = std::set<std::uint64_t>;

Bytes make_program(Recipe& recipe, Starts& starts) {
  Bytes code;
  std::size_t count = 8 + recipe.next() % 40;
  for (std::size_t i = 0; i < count; ++i) {
    starts.insert(kBase + code.size());
    unsigned choice = recipe.next();
    auto distance = static_cast<std::uint8_t>(recipe.next() % 64 - 32);
    switch (choice % 11) {
      case 0:
      case 1:
      case 2:
        code.insert(code.end(), {0x75, distance});  // jne
        break;
      case 3:
        code.insert(code.end(), {0xeb, distance});  // jmp
        break;
      case 4:
        code.insert(code.end(),
                    {0xe8, distance, static_cast<std::uint8_t>(distance >> 7 ? 0xff : 0),
                     static_cast<std::uint8_t>(distance >> 7 ? 0xff : 0),
                     static_cast<std::uint8_t>(distance >> 7 ? 0xff : 0)});  // call
        break;
      case 5:
        code.push_back(0xc3);  // ret
        break;
      case 6:
        code.insert(code.end(), {0xff, 0xe0});  // jmp rax
        break;
      case 7:
        code.insert(code.end(), {0xff, 0xd0});  // call rax
        break;
      case 8:
        code.insert(code.end(), {0x0f, 0x05});  // syscall
        break;
      default:
        code.push_back(0x90);
        break;
    }
  }
  return code;
}

// --- A trace ---------------------------------------------------------------------------------

class TraceMaker {
 public:
  TraceMaker(Recipe& recipe, std::size_t code_size) : recipe_(recipe), code_size_(code_size) {}

  Bytes make() {
    has_newer_packets_ = recipe_.next() % 4 == 0;
    psb();
    while (!recipe_.done() && out_.size() < 4096) packet();
    return std::move(out_);
  }
  bool has_newer_packets() const { return has_newer_packets_; }

 private:
  std::uint64_t address() { return kBase + recipe_.next() % code_size_; }
  void raw(std::initializer_list<unsigned> bytes) {
    for (unsigned b : bytes) out_.push_back(static_cast<std::uint8_t>(b));
  }
  void ip(unsigned kind, std::uint64_t to) {
    if (recipe_.next() % 4 == 0) {
      raw({kind | 0x60});
      for (int i = 0; i < 6; ++i) raw({static_cast<unsigned>(to >> (8 * i) & 0xff)});
    } else {
      raw({kind | 0x40});
      for (int i = 0; i < 4; ++i) raw({static_cast<unsigned>(to >> (8 * i) & 0xff)});
    }
  }
  void psb() {
    for (int i = 0; i < 8; ++i) raw({0x02, 0x82});
    raw({0x19, 1, 2, 3, 4, 5, 6, 7, 0x99, 0x01});
    if (recipe_.next() % 8 != 0) ip(0x1d, address());
    raw({0x02, 0x23});
  }
  void outcomes() {
    unsigned count = 1 + recipe_.next() % 6;
    unsigned bits = recipe_.next() & ((1u << count) - 1);
    raw({(bits | 1u << count) << 1});
  }
  // What libipt 2.0.5 does not know, or takes otherwise in places where it may not stand, so that
  // only our paths can be compared.
  void newer_packet() {
    switch (recipe_.next() % 16) {
      case 0:
      case 1:
        return outcomes(), raw({0xd9, 0x40, 1, recipe_.next() % 4, 0});  // TRIG behind a TNT
      case 2:
        return ip(0x0d, address()), raw({0xd9, 0x60, 2, recipe_.next() % 4, 0});
      case 3:
        return raw({0xd9, 0xc0, 3, 0, 0}), ip(0x1d, address());  // TRIG with its FUP
      case 4:
        return raw({0xd9, 0x00, 4});
      case 5:
        return raw({0x02, 0x13, 0x81, 14}), ip(0x1d, address());  // CFE: interrupt
      case 6:
        return raw({0x99, 0x05}), ip(0x1d, address());  // RFLAGS.IF is set
      case 7:
        return raw({0x99, 0x05}), ip(0x0d, address());
      case 8:
        return raw({0x02, 0x53, 0, 1, 2, 3, 4, 5, 6, 7, 8});  // EVD
      case 9:
        return raw({0x02, 0x13, recipe_.next() % 16, 14});  // CFE without its FUP
      case 10:
        raw({0x02, 0x63, 0x84, 0x04, 1, 2, 3, 4, 0x0c, 5, 6, 7, 8});  // a block of two items
        return recipe_.next() % 2 == 0 ? raw({0x02, 0x33})
                                       : (raw({0x02, 0xb3}), ip(0x1d, address()));
      case 11:
        return raw({0x02, 0x43, recipe_.next() % 2, 0x10, 0, 0, 0, 0});  // PIP
      case 12:
        return raw({0x02, 0xc8, 1, 0, 0, 0, 0});  // VMCS
      case 13:
        return raw({0x02, 0x83});  // TraceStop
      case 14:
        return raw({0x02, 0x62});  // EXSTOP
      default:
        return raw({0x02, 0x92, 1, 2, 3, 4}), ip(0x1d, address());  // PTW with its FUP
    }
  }
  void packet() {
    if (has_newer_packets_ && recipe_.next() % 8 == 0) return newer_packet();
    switch (recipe_.next() % 30) {
      case 0:
        return psb();
      case 1:
        return ip(0x1d, address()), ip(0x0d, address());  // interrupt
      case 2:
        return ip(0x1d, address()), ip(0x01, address()), ip(0x11, address());
      case 3:
        return raw({0x01}), ip(0x11, address());  // system call
      case 4:
        raw({0x02, 0xf3});
        return recipe_.next() % 8 == 0 ? psb() : ip(0x1d, address());
      case 5:
        return raw({0x02, 0x03, 0x20, 0x00});  // CBR
      case 6:
        return raw({0x02, 0xc3, 0x88, 1, 2, 3, 4, 5, 6, 7, 8});
      case 7:
        return raw({0x99, 0x21}), ip(0x1d, address());  // transaction
      case 8:
        return raw({0x02, 0xe2}), ip(0x1d, address());  // EXSTOP
      case 9:
        return raw({0x02, 0x12, 1, 2, 3, 4});  // PTW
      case 10:
        return raw({0x0b, 0x0f, 0x04});  // CYC
      case 11:
        return raw({0x00, 0x59, recipe_.next()});
      case 12:
        return raw({recipe_.next()});  // anything
      case 13:
      case 14:
      case 15:
        return ip(0x0d, address());
      case 16:
        return raw({0x02, 0xa3, recipe_.next(), recipe_.next(), 0x01, 0, 0, 0});
      case 17:
      case 18:  // out of a filter and in again
        return ip(0x01, address()), raw({0, 0, 0}), ip(0x11, address());
      case 19:
        return raw({0x02, 0xc2, 1, 0, 0, 0, 2, 0, 0, 0, 0x02, 0xf3}), ip(0x1d, address());  // MWAIT
      case 20:
        return raw({0x02, 0x22, 0, recipe_.next()});  // PWRE
      case 21:
        return raw({0x02, 0xa2, recipe_.next(), 1, 0, 0, 0});  // PWRX
      case 22:
        return raw({0x02, 0x73, recipe_.next(), 1, 0, 2, 0});  // TMA
      default:
        return outcomes();
    }
  }

  Recipe& recipe_;
  std::size_t code_size_;
  bool has_newer_packets_ = false;
  Bytes out_;
};

// --- What a decoder said ---------------------------------------------------------------------

// libipt does not tell whether a time is exact.
constexpr int kTimeFlags = kEventHasTime | kEventTimeExact;

// Items as text, up to a limit; `clean` is how many came before the first gap.
struct Story : Sink {
  // As libipt, which does not know RFLAGS.IF, which any MODE.Exec may tell, and loses an MWAIT
  // without an EXSTOP.
  bool is_like_libipt = false;
  std::vector<std::string> items, gaps;
  std::size_t clean = ~std::size_t{0}, first_gap_offset = 0;

  void instructions(std::span<const Instruction> run, const RunState& state) override {
    for (const Instruction& insn : run)
      if (items.size() < 20000)
        items.push_back(fmt::format("{:x}{}", insn.address.value,
                                    state.in_transaction ? " in transaction" : ""));
  }
  void event(const Event& e) override {
    if (e.kind == EventKind::kCbr && e.has(kEventStatusUpdate)) return;
    if (e.kind == EventKind::kInterruptFlag && is_like_libipt) return;
    if (e.kind == EventKind::kMwait && e.has(kEventIpSuppressed) && is_like_libipt) return;
    std::uint64_t to = e.kind == EventKind::kOverflow ? 0 : e.to.value;
    std::uint64_t ip = e.kind == EventKind::kEndOfTrace ? 0 : e.ip.value;
    items.push_back(fmt::format("[{} flags {:x} ip {:x} to {:x} payload {:x}]",
                                static_cast<int>(e.kind), e.flags & ~kTimeFlags, ip, to,
                                e.payload));
  }
  void gap(const Gap& gap) override {
    if (gaps.empty()) first_gap_offset = gap.offset_bytes;
    clean = std::min(clean, items.size());
    items.push_back(fmt::format("({})", error_text(gap.error)));
    gaps.push_back(fmt::format("{} at {:x}{} offset {} size {}", error_text(gap.error),
                               gap.ip.value, gap.executed ? " executed" : "", gap.offset_bytes,
                               gap.size_bytes));
  }
};

// Whether an uncompressed return met a call on the stack: there the two differ on purpose.
// And whether the middle of an instruction was executed.
struct Watch : Sink {
  explicit Watch(const Starts& program) : starts(program) {}

  const Starts& starts;
  bool uncertain = false;
  int depth = 0;
  std::optional<Instruction> before;
  std::vector<std::uint64_t> calls;

  void instructions(std::span<const Instruction> run, const RunState&) override {
    for (const Instruction& insn : run) {
      uncertain |= !starts.contains(insn.address.value);
      if (before && before->kind == InstructionClass::kReturn && !calls.empty()) {
        uncertain |= calls.back() != insn.address.value;
        calls.pop_back();
      }
      if (insn.kind == InstructionClass::kCall || insn.kind == InstructionClass::kIndirectCall)
        calls.push_back(insn.next().value);
      before = insn;
    }
  }
  void event(const Event&) override {
    // A return whose target an event hides.
    uncertain |= before && before->kind == InstructionClass::kReturn && !calls.empty();
    before.reset();
  }
  void gap(const Gap&) override { before.reset(); }
};

// What is being decoded, for a report that can be worked with.
Bytes current_program, current_trace;

void print_hex(const char* name, ByteSpan bytes) {
  std::fprintf(stderr, "%s:", name);
  for (std::uint8_t byte : bytes) std::fprintf(stderr, " %02x", byte);
  std::fprintf(stderr, "\n");
}

[[noreturn]] void report(const char* what, const std::vector<std::string>& a,
                         const std::vector<std::string>& b, std::size_t at) {
  std::fprintf(stderr, "%s differ at item %zu\n", what, at);
  for (std::size_t i = at < 8 ? 0 : at - 8; i < at + 4; ++i)
    std::fprintf(stderr, "  %-60s | %s\n", i < a.size() ? a[i].c_str() : "-",
                 i < b.size() ? b[i].c_str() : "-");
  print_hex("code", current_program);
  print_hex("trace", current_trace);
  std::abort();
}

std::string gap_text(DecodeError error) { return fmt::format("({})", error_text(error)); }

// A mode that no processor has, CS.L and CS.D, is an error at its packet to us; libipt tells it and
// goes on, with whatever comes of it.
bool is_impossible_mode(const Story& ours, ByteSpan trace) {
  const std::size_t at = ours.first_gap_offset;
  return ours.clean < ours.items.size() && at + 1 < trace.size() && trace[at] == 0x99 &&
         (trace[at + 1] & 0xe3) == 0x03;
}

// Where the two part on purpose: at the first MODE.Exec that no TIP or TIP.PGE follows. With event
// tracing an instruction like STI makes one before a FUP, which libipt does not know; with one
// before a TIP.PGD libipt loses the end of the tracing. As far as the packets can be read.
std::size_t find_mode_without_target(ByteSpan trace) {
  PacketReader packets(trace);
  std::size_t mode = trace.size(), offset = 0;
  bool in_psb = false;
  for (Packet packet; packets.next(packet) == ReadStatus::kOk; offset = packets.offset()) {
    switch (packet.kind) {
      case PacketKind::kPsb:
        in_psb = true;
        break;
      case PacketKind::kPsbEnd:
        in_psb = false;
        break;
      case PacketKind::kModeExec:
        if (!in_psb) mode = std::min(mode, offset);
        break;
      case PacketKind::kFup:
      case PacketKind::kTipPgd:
        if (mode != trace.size() && !in_psb) return mode;
        break;
      case PacketKind::kTip:
      case PacketKind::kTipPge:
      case PacketKind::kOvf:
        mode = trace.size();
        in_psb = false;
        break;
      default:
        break;
    }
  }
  return trace.size();
}

// Tracing ended at a conditional branch, and packets come where none can be: libipt takes its
// outcome from them.
bool has_outcome_behind_end(const Story& ours, std::size_t at) {
  return at + 1 == ours.clean && ours.items[at + 1] == gap_text(DecodeError::kNoEnable) &&
         ours.items[at].starts_with(fmt::format("[{} flags {:x} ",
                                                static_cast<int>(EventKind::kDisabled),
                                                static_cast<int>(kEventIpSuppressed)));
}

// An overflow goes on at the address of a PSB+; to libipt tracing is disabled.
bool goes_on_in_psb(const Story& ours, const Story& theirs, std::size_t at) {
  auto is_overflow = [at](const Story& story, int flags) {
    return story.items[at].starts_with(
        fmt::format("[{} flags {:x} ", static_cast<int>(EventKind::kOverflow), flags));
  };
  return is_overflow(ours, 0) && is_overflow(theirs, kEventIpSuppressed);
}

void compare_with_libipt(const CodeImage& code, const Starts& starts, const DecoderConfig& config,
                         ByteSpan trace) {
  Story ours, theirs;
  Watch watch(starts);
  ours.is_like_libipt = true;
  make_flow_decoder(code, config)->decode(trace, ours);
  make_flow_decoder(code, config)->decode(trace, watch);
  if (watch.uncertain) return;
  // Endless loops are for us to find: libipt would not come back.
  for (const std::string& item : ours.items)
    if (item == gap_text(DecodeError::kEndlessLoop)) return;
  make_libipt_decoder(code, config)->decode(trace, theirs);
  std::size_t sure = std::min({ours.clean, theirs.clean, ours.items.size(), theirs.items.size()});
  for (std::size_t i = 0; i < sure; ++i) {
    if (ours.items[i] == theirs.items[i]) continue;
    if (has_outcome_behind_end(ours, i) || goes_on_in_psb(ours, theirs, i)) return;
    report("flow and libipt", ours.items, theirs.items, i);
  }
  bool no_instruction = ours.clean < ours.items.size() &&
                        ours.items[ours.clean] == gap_text(DecodeError::kBadInstruction);
  if (no_instruction || is_impossible_mode(ours, trace)) return;
  if (ours.clean < theirs.clean && ours.clean < theirs.items.size())
    report("flow (which finds a gap) and libipt", ours.items, theirs.items, ours.clean);
}

std::vector<std::string> texts(const std::vector<BranchRecord>& records) {
  std::vector<std::string> texts;
  for (const BranchRecord& r : records)
    texts.push_back(fmt::format("{} {:x} -> {:x} time {:x} {} {:x} {}", kind_name(r.kind),
                                r.from.value, r.to.value, r.time, r.insns, r.flags, r.extra));
  return texts;
}

void expect_equal(const char* what, const std::vector<std::string>& a,
                  const std::vector<std::string>& b) {
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i)
    if (i >= a.size() || i >= b.size() || a[i] != b[i]) report(what, a, b, i);
}

template <class Decode>
std::vector<std::string> records_of(Decode decode) {
  RecordSink sink;
  decode(sink);
  sink.finish();
  return texts(sink.drain());
}

// The fast path against the complete one: items, records, gaps and times.
void compare_paths(const CodeImage& code, const DecoderConfig& config, ByteSpan trace) {
  Story complete, fast;
  FlowWalker(trace, code, config, complete).run(0, trace.size());
  auto decoder = make_flow_decoder(code, config);
  decoder->decode(trace, fast);
  expect_equal("items of the fast and the complete path", fast.items, complete.items);
  expect_equal("gaps of the fast and the complete path", fast.gaps, complete.gaps);
  std::optional<std::size_t> psb = find_psb(trace, 0);
  if (!psb) return;
  auto expected =
      records_of([&](Sink& sink) { FlowWalker(trace, code, config, sink).run(0, trace.size()); });
  expect_equal("records of the fast and the complete path",
               records_of([&](Sink& sink) { decoder->decode(trace, sink); }), expected);
  Segment segment{*psb, trace.size()};
  std::vector<SegmentPath> paths = decode_segments(trace, {&segment, 1}, code, config, 1);
  expect_equal("records of a segment and of the complete path", texts(join_records(paths)),
               expected);
}

}  // namespace

std::vector<Bytes> fuzz_seeds() {
  std::vector<Bytes> seeds;
  std::uint32_t state = 12345;
  for (int seed = 0; seed < 64; ++seed) {
    Bytes bytes(200 + static_cast<std::size_t>(seed) * 8);
    for (auto& b : bytes) {
      state = state * 1664525u + 1013904223u;
      b = static_cast<std::uint8_t>(state >> 24);
    }
    seeds.push_back(std::move(bytes));
  }
  return seeds;
}

void fuzz_one(ByteSpan input) {
  Recipe recipe(input);
  Starts starts;
  Bytes program = make_program(recipe, starts);
  std::size_t size = program.size();
  current_program = program;
  CodeImage code;
  if (!code.add({kBase}, std::move(program))) return;
  TraceMaker maker(recipe, size);
  Bytes trace = maker.make();
  current_trace = trace;
  DecoderConfig config;
  config.timing = {1, 64, 3, 32};
  config.resumption = Resumption::kAtPsb;
  if (!maker.has_newer_packets())
    compare_with_libipt(code, starts, config,
                        ByteSpan(trace).first(find_mode_without_target(trace)));
  compare_paths(code, config, trace);
  config.resumption = Resumption::kAtAddress;
  compare_paths(code, config, trace);
}

}  // namespace tailtrace
