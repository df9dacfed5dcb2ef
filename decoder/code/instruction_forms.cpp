#include "decoder/code/instruction_forms.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "decoder/code/prefixes.h"

namespace tailtrace {
namespace {

// Opcodes of map 0 that certainly have no ModRM byte. One that is missing here has more forms than
// it needs; that is all.
constexpr bool lacks_modrm(std::uint8_t opcode) {
  bool arithmetic_of_rax = opcode < 0x40 && ((opcode & 7) == 4 || (opcode & 7) == 5);
  return arithmetic_of_rax || (opcode >= 0x50 && opcode < 0x60) || opcode == 0x68 ||
         opcode == 0x6a || (opcode >= 0x70 && opcode < 0x80) ||
         (opcode >= 0x90 && opcode < 0xa0 && opcode != 0x9a) || opcode == 0xa8 || opcode == 0xa9 ||
         (opcode >= 0xb0 && opcode < 0xc0) || opcode == 0xc3 || opcode == 0xc9 || opcode == 0xcc ||
         opcode == 0xe8 || opcode == 0xe9 || opcode == 0xeb;
}

// The same in map 0F: Jcc, SYSCALL, BSWAP.
constexpr bool lacks_modrm_0f(std::uint8_t opcode) {
  return (opcode & 0xf0) == 0x80 || opcode == 0x05 || (opcode >= 0xc8 && opcode < 0xd0);
}

// Prefixes that are not part of a key, escapes to other maps, and 3DNow, whose last byte counts. A
// REX where none belongs is one of them in 64-bit code.
constexpr bool is_uncommon(std::uint8_t opcode) {
  if (is_legacy_prefix(opcode)) return true;
  switch (opcode) {
    case 0x62:  // EVEX, or BOUND
    case 0xc4:  // VEX, or LES and LDS
    case 0xc5:
    case 0x8f:  // XOP, or POP
    case 0xd5:  // REX2, or AAD
      return true;
    default:
      return false;
  }
}

constexpr bool is_uncommon_0f(std::uint8_t opcode) {
  return opcode == 0x0f || opcode == 0x38 || opcode == 0x3a;
}

// Opcodes whose ModRM.reg is more than an operand: it chooses an instruction, or names a register
// that there may not be.
constexpr bool reg_counts(std::uint8_t opcode) {
  constexpr std::uint8_t kOpcodes[] = {0x8c, 0x8e, 0xc6, 0xc7, 0xf6, 0xf7, 0xfe, 0xff};
  return (opcode & 0xf8) == 0xd8 || std::ranges::find(kOpcodes, opcode) != std::end(kOpcodes);
}

constexpr bool reg_counts_0f(std::uint8_t opcode) {
  constexpr std::uint8_t kOpcodes[] = {0x00, 0x01, 0x1a, 0x1b, 0x71, 0x72, 0x73,
                                       0x78, 0xa6, 0xa7, 0xae, 0xba, 0xc7};
  return (opcode & 0xfc) == 0x20 || std::ranges::find(kOpcodes, opcode) != std::end(kOpcodes);
}

// The same by opcode, map 0 and then 0F: which byte comes cannot be guessed.
enum Trait : std::uint8_t { kLacksModrm = 1, kUncommon = 2, kRegCounts = 4 };
constexpr std::array<std::uint8_t, 512> kTraits = [] {
  std::array<std::uint8_t, 512> traits{};
  for (unsigned i = 0; i < 256; ++i) {
    const auto opcode = static_cast<std::uint8_t>(i);
    traits[i] = (lacks_modrm(opcode) ? kLacksModrm : 0) | (is_uncommon(opcode) ? kUncommon : 0) |
                (reg_counts(opcode) ? kRegCounts : 0);
    traits[256 + i] = (lacks_modrm_0f(opcode) ? kLacksModrm : 0) |
                      (is_uncommon_0f(opcode) ? kUncommon : 0) |
                      (reg_counts_0f(opcode) ? kRegCounts : 0);
  }
  return traits;
}();

// What instructions of the same form have in common; 0: uncommon. REQUIRES:
// kMaxInstructionSize_bytes.
inline std::uint32_t key_of(const std::uint8_t* bytes, CodeMode mode) {
  constexpr std::uint32_t kUsed = 1u << 31, kMap0f = 1u << 30, kDisplacement = 1u << 29;
  constexpr std::uint32_t kRegisters = 7u << 16 | 7u << 3;  // REX.R, X and B; ModRM.reg
  std::uint32_t key = kUsed;
  std::uint8_t first = *bytes;
  if (first == 0x66 || first == 0xf2 || first == 0xf3) {
    key |= (first == 0x66 ? 1u : first - 0xf0u) << 27;
    ++bytes;
  }
  auto is_rex = [mode](std::uint8_t byte) {
    return mode == CodeMode::k64 && (byte & 0xf0) == 0x40;
  };
  if (is_rex(*bytes)) key |= ((*bytes++ & 0x0fu) | 0x10u) << 16;
  unsigned opcode = *bytes++;
  if (opcode == 0x0f) {
    key |= kMap0f;
    opcode = 256u + *bytes++;
  } else if (is_rex(static_cast<std::uint8_t>(opcode))) {
    return 0;
  }
  const unsigned traits = kTraits[opcode];
  if ((traits & kUncommon) != 0) return 0;
  key |= (opcode & 0xff) << 8;
  if ((traits & kLacksModrm) != 0) return key;
  std::uint8_t modrm = bytes[0];
  key |= modrm;
  if ((traits & kRegCounts) == 0) key &= ~kRegisters;
  if ((modrm & 0xc7) == 0x04 && (bytes[1] & 7) == 5) key |= kDisplacement;
  return key;
}

template <typename Distance>
std::uint64_t distance_at(const std::uint8_t* bytes) {
  Distance distance;
  std::memcpy(&distance, bytes, sizeof distance);
  return static_cast<std::uint64_t>(std::int64_t{distance});
}

}  // namespace

InstructionForms::InstructionForms(CodeMode mode)
    : mode_(mode), wide_mask_(target_mask({}, 32, mode)), forms_(std::make_unique<Table>()) {}

// Direct branches without a prefix are known by their opcode. What is told by a jump of ours and
// not out of a table, the processor need not wait for.
Decoded InstructionForms::decode(const std::uint8_t* bytes, Address address) {
  const std::uint8_t opcode = *bytes;
  if ((opcode & 0xf0) == 0x70) return short_branch(bytes, address, InstructionClass::kConditional);
  if (opcode == 0x0f && (bytes[1] & 0xf0) == 0x80)
    return near_branch(bytes, 2, address, InstructionClass::kConditional);
  if ((opcode & 0xfc) == 0xe8 && opcode != 0xea) {
    if (opcode == 0xeb) return short_branch(bytes, address, InstructionClass::kJump);
    return near_branch(bytes, 1, address,
                       opcode == 0xe8 ? InstructionClass::kCall : InstructionClass::kJump);
  }
  const std::uint32_t key = key_of(bytes, mode_);
  const ByteSpan all{bytes, kMaxInstructionSize_bytes};
  if (key == 0) return decode_uncommon(all, address);
  Form& form = (*forms_)[key * 0x9e3779b1u >> (32 - kSlotBits)];
  if (form.key != key) return learn(form, key, all, address);
  return {{}, form.size_bytes, form.kind};
}

// With a distance of one byte.
inline Decoded InstructionForms::short_branch(const std::uint8_t* bytes, Address address,
                                              InstructionClass kind) const {
  const Address target = address + 2 + distance_at<std::int8_t>(bytes + 1);
  return {cut(target, address), 2, kind};
}

// With one as wide as the mode's operands.
inline Decoded InstructionForms::near_branch(const std::uint8_t* bytes, unsigned opcode_bytes,
                                             Address address, InstructionClass kind) const {
  std::uint8_t size = opcode_bytes + 4;
  std::uint64_t distance;
  if (mode_ == CodeMode::k16) [[unlikely]] {
    size = opcode_bytes + 2;
    distance = distance_at<std::int16_t>(bytes + opcode_bytes);
  } else {
    distance = distance_at<std::int32_t>(bytes + opcode_bytes);
  }
  return {cut(address + size + distance, address), size, kind};
}

// Of a branch whose operand is as wide as the mode's.
inline Address InstructionForms::cut(Address target, Address from) const {
  if (mode_ == CodeMode::k16) [[unlikely]]
    return {target.value & target_mask(from, 16, mode_)};
  return {target.value & wide_mask_};
}

[[gnu::noinline]] Decoded InstructionForms::decode_uncommon(ByteSpan bytes, Address address) const {
  const std::optional<Instruction> insn = decode_instruction(bytes, address, mode_);
  return insn ? Decoded{insn->target, insn->size_bytes, insn->kind} : Decoded{};
}

// What is no instruction is not remembered, nor what has a target: few direct branches have
// prefixes or count.
[[gnu::noinline]] Decoded InstructionForms::learn(Form& form, std::uint32_t key, ByteSpan bytes,
                                                  Address address) const {
  const Decoded decoded = decode_uncommon(bytes, address);
  const bool is_direct = decoded.kind == InstructionClass::kConditional ||
                         decoded.kind == InstructionClass::kJump ||
                         decoded.kind == InstructionClass::kCall;
  if (decoded && !is_direct) form = {key, decoded.size_bytes, decoded.kind};
  return decoded;
}

}  // namespace tailtrace
