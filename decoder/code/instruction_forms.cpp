#include "decoder/code/instruction_forms.h"

#include <array>
#include <cstring>
#include <optional>

#include "decoder/code/prefixes.h"

namespace tailtrace {
namespace {

// Enough for the longest key: prefix, REX, 0F, opcode, ModRM, SIB.
constexpr std::size_t kKey_bytes = 6;

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

// The same by opcode, map 0 and then 0F: which byte comes cannot be guessed.
enum Trait : std::uint8_t { kLacksModrm = 1, kUncommon = 2 };
constexpr std::array<std::uint8_t, 512> kTraits = [] {
  std::array<std::uint8_t, 512> traits{};
  for (unsigned i = 0; i < 256; ++i) {
    const auto opcode = static_cast<std::uint8_t>(i);
    traits[i] = (lacks_modrm(opcode) ? kLacksModrm : 0) | (is_uncommon(opcode) ? kUncommon : 0);
    traits[256 + i] =
        (lacks_modrm_0f(opcode) ? kLacksModrm : 0) | (is_uncommon_0f(opcode) ? kUncommon : 0);
  }
  return traits;
}();

// What instructions of the same form have in common; 0: uncommon. REQUIRES: kKey_bytes.
std::uint32_t key_of(const std::uint8_t* bytes, CodeMode mode) {
  constexpr std::uint32_t kUsed = 1u << 31, kMap0f = 1u << 30, kDisplacement = 1u << 29;
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
  if ((modrm & 0xc7) == 0x04 && (bytes[1] & 7) == 5) key |= kDisplacement;
  return key;
}

bool has_target(InstructionClass kind) {
  return kind == InstructionClass::kConditional || kind == InstructionClass::kJump ||
         kind == InstructionClass::kCall;
}

std::uint64_t distance_at(const std::uint8_t* bytes, std::size_t size_bytes) {
  if (size_bytes == 1)
    return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int8_t>(*bytes)});
  std::int32_t distance = 0;
  std::memcpy(&distance, bytes, sizeof distance);
  return static_cast<std::uint64_t>(std::int64_t{distance});
}

}  // namespace

bool InstructionForms::decode(ByteSpan bytes, Address address, Instruction& insn) {
  std::uint32_t key = bytes.size() < kKey_bytes ? 0 : key_of(bytes.data(), mode_);
  if (key == 0) return decode_uncommon(bytes, address, insn);
  Form& form = (*forms_)[key * 0x9e3779b1u >> (32 - kSlotBits)];
  if (form.key != key) return learn(form, key, bytes, address, insn);
  if (form.size_bytes > bytes.size()) [[unlikely]]
    return decode_uncommon(bytes, address, insn);
  // Field by field: whoever asked reads them so, and at once.
  insn.address = address;
  insn.size_bytes = form.size_bytes;
  insn.kind = form.kind;
  insn.target = {};
  if (form.distance_bytes != 0)
    insn.target = insn.next() + distance_at(bytes.data() + form.size_bytes - form.distance_bytes,
                                            form.distance_bytes);
  return true;
}

[[gnu::noinline]] bool InstructionForms::decode_uncommon(ByteSpan bytes, Address address,
                                                         Instruction& insn) const {
  const std::optional<Instruction> decoded = decode_instruction(bytes, address, mode_);
  insn = decoded.value_or(Instruction{});
  return decoded.has_value();
}

// What is no instruction is not remembered, nor what is cut to the width of a mode.
[[gnu::noinline]] bool InstructionForms::learn(Form& form, std::uint32_t key, ByteSpan bytes,
                                               Address address, Instruction& insn) {
  if (!decode_uncommon(bytes, address, insn)) return false;
  if (!has_target(insn.kind)) {
    form = {key, insn.size_bytes, 0, insn.kind};
    return true;
  }
  if (mode_ != CodeMode::k64) return true;
  for (std::uint8_t size : {std::uint8_t{1}, std::uint8_t{4}}) {
    bool fits =
        insn.size_bytes > size &&
        insn.next() + distance_at(bytes.data() + insn.size_bytes - size, size) == insn.target;
    // A short distance could look like a long one's last byte, but for the opcode.
    bool is_short =
        (key >> 8 & 0xf0) == 0x70 || (key >> 8 & 0xff) == 0xeb || (key >> 8 & 0xfc) == 0xe0;
    if (fits && is_short == (size == 1)) {
      form = {key, insn.size_bytes, size, insn.kind};
      break;
    }
  }
  return true;
}

}  // namespace tailtrace
