#include "decoder/code/apx.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "decoder/code/prefixes.h"

namespace tailtrace {
namespace {

constexpr std::uint8_t kRex2 = 0xd5, kEvex = 0x62;
constexpr std::size_t kJmpAbsSize_bytes = 11;

std::size_t prefixes_of(ByteSpan bytes) {
  auto last = std::find_if_not(bytes.begin(), bytes.end(), is_legacy_prefix);
  return static_cast<std::size_t>(last - bytes.begin());
}

bool is_jmpabs(ByteSpan bytes) {
  return bytes.size() >= kJmpAbsSize_bytes && bytes[0] == kRex2 && bytes[1] == 0 &&
         bytes[2] == 0xa1;
}

// Rows of the opcode maps that REX2 cannot be put before, and escapes to other maps.
bool forbids_rex2(bool map_0f, std::uint8_t opcode) {
  unsigned row = opcode >> 4;
  if (map_0f) return row == 3 || row == 8;
  if (row == 4 || row == 7 || row == 0xa || row == 0xe) return true;
  return is_legacy_prefix(opcode) || opcode == 0x0f || opcode == kEvex || opcode == 0xc4 ||
         opcode == 0xc5 || opcode == kRex2;
}

// REX2 holds the bits of a REX and says which map: D5 M0RXBWRXB. So its instruction is that of the
// REX, in one byte more when the map is not told by a byte of its own.
std::optional<Instruction> decode_rex2(ByteSpan bytes, std::size_t at, Address address) {
  if (at == 0 && is_jmpabs(bytes))
    return Instruction{address, {}, kJmpAbsSize_bytes, InstructionClass::kIndirectJump};
  if (bytes.size() < at + 3) return std::nullopt;
  std::uint8_t payload = bytes[at + 1];
  bool map_0f = (payload & 0x80) != 0;
  if (forbids_rex2(map_0f, bytes[at + 2])) return std::nullopt;
  Bytes with_rex(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
  with_rex.push_back(static_cast<std::uint8_t>(0x40 | (payload & 0x0f)));
  if (map_0f) with_rex.push_back(0x0f);
  with_rex.insert(with_rex.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at + 2), bytes.end());
  std::optional<Instruction> insn = decode_instruction(with_rex, address);
  if (!insn) return insn;
  if (!map_0f) ++insn->size_bytes;
  if (insn->size_bytes > std::min(bytes.size(), kMaxInstructionSize_bytes)) return std::nullopt;
  return insn;
}

// ModRM, SIB and displacement in 64-bit code (SDM volume 2, tables 2-2 and 2-3); 0: cut off.
std::size_t operand_bytes(ByteSpan bytes) {
  if (bytes.empty()) return 0;
  unsigned mod = bytes[0] >> 6, rm = bytes[0] & 7;
  if (mod == 3) return 1;
  std::size_t size = 1;
  bool absolute = mod == 0 && rm == 5;
  if (rm == 4) {
    if (bytes.size() < 2) return 0;
    absolute = mod == 0 && (bytes[1] & 7) == 5;
    ++size;
  }
  return size + (mod == 1 ? 1 : mod == 2 || absolute ? 4 : 0);
}

// Map 4 has the opcodes of map 0, where those of map 0F are not in the way.
std::size_t immediate_bytes(std::uint8_t opcode, std::uint8_t modrm, bool operands_of_16_bits) {
  const std::size_t word = operands_of_16_bits ? 2 : 4;
  bool test = (modrm >> 3 & 7) < 2;
  switch (opcode) {
    case 0x24:  // SHLD
    case 0x2c:  // SHRD
    case 0x6b:
    case 0x80:
    case 0x83:
    case 0xc0:
    case 0xc1:
      return 1;
    case 0x69:
    case 0x81:
      return word;
    case 0xf6:
      return test ? 1 : 0;
    case 0xf7:
      return test ? word : 0;
    default:
      return 0;
  }
}

// 62, three bytes of payload, opcode, ModRM ...; bits 1:0 of the second byte say 66, F3 or F2.
std::optional<Instruction> decode_map_4(ByteSpan bytes, std::size_t at, Address address) {
  constexpr std::size_t kOpcode = 4, kModRm = 5;
  if (bytes.size() <= at + kModRm) return std::nullopt;
  bool wide = (bytes[at + 2] & 0x80) != 0;
  bool operands_of_16_bits = (bytes[at + 2] & 3) == 1 && !wide;
  std::size_t operand = operand_bytes(bytes.subspan(at + kModRm));
  std::size_t size = at + kModRm + operand +
                     immediate_bytes(bytes[at + kOpcode], bytes[at + kModRm], operands_of_16_bits);
  if (operand == 0 || size > std::min(bytes.size(), kMaxInstructionSize_bytes)) return std::nullopt;
  return Instruction{address, {}, static_cast<std::uint8_t>(size), InstructionClass::kOther};
}

}  // namespace

bool is_apx(ByteSpan bytes) {
  std::size_t at = prefixes_of(bytes);
  if (at + 1 >= bytes.size()) return false;
  return bytes[at] == kRex2 || (bytes[at] == kEvex && (bytes[at + 1] & 7) == 4);
}

std::optional<Instruction> decode_apx(ByteSpan bytes, Address address) {
  std::size_t at = prefixes_of(bytes);
  return bytes[at] == kRex2 ? decode_rex2(bytes, at, address) : decode_map_4(bytes, at, address);
}

std::string disassemble_apx(ByteSpan bytes) {
  if (!is_jmpabs(bytes)) return decode_apx(bytes, {}) ? "(apx)" : "(bad)";
  std::uint64_t target = 0;
  std::memcpy(&target, bytes.data() + 3, sizeof target);
  char text[sizeof "jmpabs 0x0123456789abcdef"];
  std::snprintf(text, sizeof text, "jmpabs 0x%" PRIx64, target);
  return text;
}

}  // namespace tailtrace
