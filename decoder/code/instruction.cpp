#include "decoder/code/instruction.h"

#include <Zydis/Zydis.h>
#include <fmt/core.h>

#include "decoder/code/apx.h"

namespace tailtrace {
namespace {

constexpr std::size_t kEventReturnSize_bytes = 4;

const ZydisDecoder& decoder_for(CodeMode mode) {
  static const auto make = [](ZydisMachineMode machine, ZydisStackWidth width) {
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, machine, width);
    return decoder;
  };
  static const ZydisDecoder k64 = make(ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  static const ZydisDecoder k32 = make(ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32);
  static const ZydisDecoder k16 = make(ZYDIS_MACHINE_MODE_LEGACY_16, ZYDIS_STACK_WIDTH_16);
  return mode == CodeMode::k64 ? k64 : mode == CodeMode::k32 ? k32 : k16;
}

// An immediate that is relative to the next instruction; RIP-relative memory is not.
bool is_relative(const ZydisDecodedInstruction& insn) {
  return insn.raw.imm[0].is_relative == ZYAN_TRUE;
}

bool is_far(const ZydisDecodedInstruction& insn) {
  return insn.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
}

bool repeats(const ZydisDecodedInstruction& insn) {
  return (insn.attributes &
          (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)) != 0;
}

// MOV to CR3, as PT decoders need to know it (SDM volume 3, "PIP packet"). REX.R would make it
// CR11; the register it is loaded from may be any.
bool writes_cr3(const ZydisDecodedInstruction& insn, ByteSpan bytes) {
  return insn.mnemonic == ZYDIS_MNEMONIC_MOV && insn.opcode_map == ZYDIS_OPCODE_MAP_0F &&
         insn.opcode == 0x22 && ((bytes[insn.raw.modrm.offset] >> 3) & 7) == 3 &&
         insn.raw.rex.R == 0;
}

InstructionClass class_of_branch(const ZydisDecodedInstruction& insn) {
  switch (insn.meta.category) {
    case ZYDIS_CATEGORY_COND_BR:
      // Hardware transactions: XBEGIN and XEND fall through, XABORT and aborts are asynchronous.
      return is_relative(insn) && insn.mnemonic != ZYDIS_MNEMONIC_XBEGIN
                 ? InstructionClass::kConditional
                 : InstructionClass::kOther;
    case ZYDIS_CATEGORY_UNCOND_BR:
      if (insn.mnemonic != ZYDIS_MNEMONIC_JMP) return InstructionClass::kOther;
      if (is_far(insn)) return InstructionClass::kFarJump;
      return is_relative(insn) ? InstructionClass::kJump : InstructionClass::kIndirectJump;
    case ZYDIS_CATEGORY_CALL:
      if (is_far(insn)) return InstructionClass::kFarCall;
      return is_relative(insn) ? InstructionClass::kCall : InstructionClass::kIndirectCall;
    case ZYDIS_CATEGORY_RET:
      return insn.mnemonic == ZYDIS_MNEMONIC_RET && !is_far(insn) ? InstructionClass::kReturn
                                                                  : InstructionClass::kFarReturn;
    default:
      return InstructionClass::kOther;
  }
}

InstructionClass class_of(const ZydisDecodedInstruction& insn, ByteSpan bytes) {
  switch (insn.mnemonic) {
    case ZYDIS_MNEMONIC_SYSCALL:
    case ZYDIS_MNEMONIC_SYSENTER:
    case ZYDIS_MNEMONIC_INT:
    case ZYDIS_MNEMONIC_INT1:
    case ZYDIS_MNEMONIC_INT3:
    case ZYDIS_MNEMONIC_INTO:
      return InstructionClass::kSystemCall;
    case ZYDIS_MNEMONIC_SYSRET:
    case ZYDIS_MNEMONIC_SYSEXIT:
      return InstructionClass::kSystemReturn;
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_UIRET:
      return InstructionClass::kFarReturn;
    case ZYDIS_MNEMONIC_VMLAUNCH:
    case ZYDIS_MNEMONIC_VMRESUME:
      return InstructionClass::kVmEntry;
    case ZYDIS_MNEMONIC_VMCALL:
      return InstructionClass::kVmCall;
    case ZYDIS_MNEMONIC_PTWRITE:
      return InstructionClass::kPtwrite;
    default:
      break;
  }
  if (writes_cr3(insn, bytes)) return InstructionClass::kMovCr3;
  InstructionClass branch = class_of_branch(insn);
  if (branch != InstructionClass::kOther) return branch;
  return repeats(insn) ? InstructionClass::kRepString : InstructionClass::kOther;
}

// Where a relative operand leads. REQUIRES: is_relative(insn).
Address target_of(const ZydisDecodedInstruction& insn, Address address, CodeMode mode) {
  const std::uint64_t to =
      address.value + insn.length + static_cast<std::uint64_t>(insn.raw.imm[0].value.s);
  return {to & target_mask(address, insn.operand_width, mode)};
}

// Zydis counts XBEGIN and the like as relative; only near branches have a target here.
bool has_target(InstructionClass kind) {
  return kind == InstructionClass::kConditional || kind == InstructionClass::kJump ||
         kind == InstructionClass::kCall;
}

// ERETU (F3 0F 01 CA) and ERETS (F2 0F 01 CA) of FRED return from an event; Zydis 4.0 does not know
// them. (Intel, "Flexible Return and Event Delivery", section 6.)
std::string_view event_return(ByteSpan bytes, CodeMode mode) {
  bool is_one = mode == CodeMode::k64 && bytes.size() >= kEventReturnSize_bytes &&
                (bytes[0] == 0xf2 || bytes[0] == 0xf3) && bytes[1] == 0x0f && bytes[2] == 0x01 &&
                bytes[3] == 0xca;
  if (!is_one) return {};
  return bytes[0] == 0xf3 ? "eretu" : "erets";
}

}  // namespace

std::optional<Instruction> decode_instruction(ByteSpan bytes, Address address, CodeMode mode) {
  if (!event_return(bytes, mode).empty())
    return Instruction{address, {}, kEventReturnSize_bytes, InstructionClass::kFarReturn};
  if (mode == CodeMode::k64 && is_apx(bytes)) return decode_apx(bytes, address);
  ZydisDecodedInstruction insn;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder_for(mode), nullptr, bytes.data(),
                                                  bytes.size(), &insn)))
    return std::nullopt;
  Instruction result;
  result.address = address;
  result.size_bytes = insn.length;
  result.kind = class_of(insn, bytes);
  if (has_target(result.kind)) result.target = target_of(insn, address, mode);
  return result;
}

std::string disassemble(ByteSpan bytes, Address address, CodeMode mode) {
  if (auto name = event_return(bytes, mode); !name.empty()) return std::string(name);
  if (mode == CodeMode::k64 && is_apx(bytes)) return disassemble_apx(bytes);
  ZydisDecodedInstruction insn;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  static const ZydisFormatter formatter = [] {
    ZydisFormatter f;
    ZydisFormatterInit(&f, ZYDIS_FORMATTER_STYLE_INTEL);
    for (auto property :
         {ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE, ZYDIS_FORMATTER_PROP_ADDR_PADDING_RELATIVE,
          ZYDIS_FORMATTER_PROP_DISP_PADDING, ZYDIS_FORMATTER_PROP_IMM_PADDING})
      ZydisFormatterSetProperty(&f, property, ZYDIS_PADDING_DISABLED);
    ZydisFormatterSetProperty(&f, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
    return f;
  }();
  char text[256];
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder_for(mode), bytes.data(), bytes.size(), &insn,
                                           operands)) ||
      !ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&formatter, &insn, operands,
                                                    insn.operand_count_visible, text, sizeof text,
                                                    address.value, nullptr)))
    return "(bad)";
  if (mode == CodeMode::k64 || !is_relative(insn)) return text;
  // Zydis cuts all targets of 16-bit code, and none of 32-bit code.
  const std::string_view all = text;
  return fmt::format("{}{:#x}", all.substr(0, all.rfind("0x")),
                     target_of(insn, address, mode).value);
}

std::string_view class_name(InstructionClass kind) {
  static constexpr std::string_view kNames[] = {
      "other",         "rep-string", "conditional", "jump",     "call",       "indirect-jump",
      "indirect-call", "return",     "far-jump",    "far-call", "far-return", "system-call",
      "system-return", "vm-entry",   "vm-call",     "mov-cr3",  "ptwrite"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(InstructionClass::kPtwrite) + 1);
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace tailtrace
