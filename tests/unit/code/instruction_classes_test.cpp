// Every opcode's class and size, against what Intel's decoder makes of the same bytes.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <intel-pt.h>

#include "decoder/code/apx.h"
#include "decoder/code/instruction.h"
#include "decoder/pt/far.h"
#include "decoder/pt/packets/packet_writer.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t kAt = 0x1000;

int read_bytes(std::uint8_t* buffer, std::size_t size, const pt_asid*, std::uint64_t ip,
               void* context) {
  const auto& bytes = *static_cast<const Bytes*>(context);
  if (ip < kAt || ip >= kAt + bytes.size()) return -pte_nomap;
  std::size_t count = std::min<std::size_t>(size, kAt + bytes.size() - ip);
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(ip - kAt), count, buffer);
  return static_cast<int>(count);
}

// Decodes one instruction at a time with libipt.
class Reference {
 public:
  // `ends`: with a TIP.PGD without address behind the start.
  explicit Reference(CodeMode mode, bool ends = false) {
    pt::PacketWriter packets;
    packets.psb();
    packets.mode_exec(mode);
    packets.fup({kAt});
    packets.psbend();
    if (ends) packets.tip_pgd_suppressed();
    trace_ = packets.take();
    pt_config config;
    pt_config_init(&config);
    config.begin = trace_.data();
    config.end = trace_.data() + trace_.size();
    decoder_ = pt_insn_alloc_decoder(&config);
    pt_image_set_callback(pt_insn_get_image(decoder_), read_bytes, &bytes_);
  }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;
  ~Reference() { pt_insn_free_decoder(decoder_); }

  pt_insn decode(const Bytes& bytes) {
    start(bytes);
    pt_insn insn{};
    pt_insn_next(decoder_, &insn, sizeof insn);
    return insn;
  }

  // Whether tracing ends by the instruction. REQUIRES: a trace that ends.
  bool ends_tracing(const Bytes& bytes) {
    start(bytes);
    pt_insn insn{};
    int status = pt_insn_next(decoder_, &insn, sizeof insn);
    pt_event event{};
    return status >= 0 && (status & pts_event_pending) != 0 &&
           pt_insn_event(decoder_, &event, sizeof event) >= 0 && event.type == ptev_disabled;
  }

 private:
  void start(const Bytes& bytes) {
    bytes_ = bytes;
    int status = pt_insn_sync_set(decoder_, 0);
    for (pt_event event; status >= 0 && (status & pts_event_pending) != 0;)
      status = pt_insn_event(decoder_, &event, sizeof event);
  }

  Bytes bytes_;
  Bytes trace_;
  pt_insn_decoder* decoder_ = nullptr;
};

pt_insn_class class_for_libipt(InstructionClass kind) {
  switch (kind) {
    case InstructionClass::kConditional:
      return ptic_cond_jump;
    case InstructionClass::kJump:
    case InstructionClass::kIndirectJump:
      return ptic_jump;
    case InstructionClass::kCall:
    case InstructionClass::kIndirectCall:
      return ptic_call;
    case InstructionClass::kReturn:
      return ptic_return;
    case InstructionClass::kFarJump:
      return ptic_far_jump;
    case InstructionClass::kFarCall:
    case InstructionClass::kSystemCall:
    case InstructionClass::kVmCall:
      return ptic_far_call;
    case InstructionClass::kFarReturn:
    case InstructionClass::kSystemReturn:
    case InstructionClass::kVmEntry:
      return ptic_far_return;
    case InstructionClass::kPtwrite:
      return ptic_ptwrite;
    default:
      return ptic_other;
  }
}

// What libipt 2.0.5 does not know: UD0 and UD1 have operands, PadLock a ModRM byte, FRED returns,
// APX, and a 66 prefix makes no other instruction of PTWRITE.
bool is_known_to_differ(ByteSpan bytes, CodeMode mode) {
  if (mode == CodeMode::k64 && is_apx(bytes)) return true;
  while (bytes[0] == 0x66 || bytes[0] == 0xf2 || bytes[0] == 0xf3 || (bytes[0] & 0xf0) == 0x40)
    bytes = bytes.subspan(1);
  if (bytes[0] != 0x0f) return false;
  bool padlock = bytes[1] == 0xa6 || bytes[1] == 0xa7;
  bool undefined = bytes[1] == 0xb9 || bytes[1] == 0xff;
  return padlock || undefined || bytes[1] == 0xae || (bytes[1] == 0x01 && bytes[2] == 0xca);
}

void compare(Reference& reference, CodeMode mode, Bytes bytes) {
  bytes.resize(bytes.size() + kMaxInstructionSize_bytes, 0);
  if (is_known_to_differ(bytes, mode)) return;
  auto ours = decode_instruction(bytes, {kAt}, mode);
  // Lengths of what is no instruction are measured by libipt.
  if (!ours) return;
  pt_insn theirs = reference.decode(bytes);
  bool equal = theirs.iclass == class_for_libipt(ours->kind) && theirs.size == ours->size_bytes;
  if (equal) return;
  ADD_FAILURE() << disassemble(bytes, {kAt}, mode)
                << fmt::format(" ({:02x} {:02x} {:02x} {:02x}): {} of {} bytes, libipt: {} of {}",
                               bytes[0], bytes[1], bytes[2], bytes[3], class_name(ours->kind),
                               ours->size_bytes, static_cast<int>(theirs.iclass), theirs.size);
}

// What TIP.PGD without an address, and with MOV to CR3 PIP, binds to.
void compare_end(Reference& reference, CodeMode mode, Bytes bytes) {
  bytes.resize(bytes.size() + kMaxInstructionSize_bytes, 0);
  if (is_known_to_differ(bytes, mode)) return;
  auto ours = decode_instruction(bytes, {kAt}, mode);
  if (!ours) return;
  bool ends = pt::is_far(ours->kind) || ours->kind == InstructionClass::kMovCr3;
  EXPECT_EQ(ends, reference.ends_tracing(bytes))
      << disassemble(bytes, {kAt}, mode)
      << fmt::format(" ({:02x} {:02x} {:02x} {:02x})", bytes[0], bytes[1], bytes[2], bytes[3]);
}

using Compare = void (*)(Reference&, CodeMode, Bytes);

void for_each_opcode(Reference& reference, CodeMode mode, const Bytes& prefixes, Compare compare) {
  for (unsigned opcode = 0; opcode < 512; ++opcode) {
    bool two_bytes = opcode >= 256;
    // A register, and memory, with each field of the opcode's extension.
    for (unsigned modrm = 0; modrm < 256; modrm += modrm < 0xc0 ? 8 : 1) {
      Bytes bytes = prefixes;
      if (two_bytes) bytes.push_back(0x0f);
      bytes.push_back(static_cast<std::uint8_t>(opcode));
      bytes.push_back(static_cast<std::uint8_t>(modrm));
      compare(reference, mode, std::move(bytes));
    }
  }
}

void compare_opcodes(CodeMode mode, const Bytes& prefixes) {
  Reference classes(mode);
  for_each_opcode(classes, mode, prefixes, compare);
  Reference ends(mode, true);
  for_each_opcode(ends, mode, prefixes, compare_end);
}

TEST(InstructionClasses, AreThoseOfLibiptInEachMode) {
  for (CodeMode mode : {CodeMode::k64, CodeMode::k32, CodeMode::k16})
    for (const Bytes& prefixes : {Bytes{}, Bytes{0x66}, Bytes{0xf2}, Bytes{0xf3}})
      compare_opcodes(mode, prefixes);
}

TEST(InstructionClasses, AreThoseOfLibiptWithRex) {
  for (const Bytes& prefixes :
       {Bytes{0x48}, Bytes{0x41}, Bytes{0x44}, Bytes{0x66, 0x48}, Bytes{0xf3, 0x48}})
    compare_opcodes(CodeMode::k64, prefixes);
}

}  // namespace
}  // namespace tailtrace
