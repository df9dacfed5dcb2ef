#include "decoder/symbols/indirect_functions.h"

#include <gelf.h>

#include <algorithm>
#include <optional>

#include "decoder/base/bytes.h"
#include "decoder/code/instruction.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t kMaxResolver_bytes = 1 << 12;
constexpr std::size_t kMaxImplementations = 1 << 16;

// The address that an instruction puts into a register: LEA relative to RIP, or where code has
// fixed addresses MOV of 32 bits (SDM volume 2).
std::optional<std::uint64_t> address_taken(ByteSpan bytes, std::uint64_t next) {
  const bool has_rex = (bytes[0] & 0xf0) == 0x40;
  const ByteSpan plain = bytes.subspan(has_rex ? 1 : 0);
  constexpr std::uint8_t kLea = 0x8d, kMovToRegister = 0xb8, kMovToRm = 0xc7;
  if (plain.size() == 6 && plain[0] == kLea && (plain[1] & 0xc7) == 0x05)
    return next + static_cast<std::uint64_t>(std::int64_t{load<std::int32_t>(plain, 2)});
  if (plain.size() == 5 && (plain[0] & 0xf8) == kMovToRegister)
    return load<std::uint32_t>(plain, 1);
  if (plain.size() == 6 && plain[0] == kMovToRm && (plain[1] & 0xf8) == 0xc0)
    return load<std::uint32_t>(plain, 2);
  return std::nullopt;
}

void add_implementations(const ElfFile& file, const ElfSymbol& resolver,
                         std::vector<IndirectFunction>& found) {
  ByteSpan code = file.code_at(resolver.value);
  code =
      code.first(std::min<std::uint64_t>({code.size(), resolver.size_bytes, kMaxResolver_bytes}));
  Address at{resolver.value};
  while (auto instruction = decode_instruction(code, at)) {
    const ByteSpan bytes = code.first(instruction->size_bytes);
    const auto address = address_taken(bytes, instruction->next().value);
    if (address && *address != resolver.value && !file.code_at(*address).empty() &&
        found.size() < kMaxImplementations)
      found.push_back({*address, resolver.name});
    code = code.subspan(bytes.size());
    at = instruction->next();
  }
}

void add_slots(Elf_Scn* section, std::map<std::uint64_t, std::uint64_t>& slots) {
  GElf_Shdr header;
  if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_RELA) return;
  Elf_Data* data = elf_getdata(section, nullptr);
  GElf_Rela rela;
  for (int i = 0; data != nullptr && gelf_getrela(data, i, &rela) != nullptr; ++i)
    if (GELF_R_TYPE(rela.r_info) == R_X86_64_IRELATIVE)
      slots.emplace(static_cast<std::uint64_t>(rela.r_addend), rela.r_offset);
}

}  // namespace

std::map<std::uint64_t, std::uint64_t> chosen_slots(const ElfFile& file) {
  std::map<std::uint64_t, std::uint64_t> slots;
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(file.elf(), section)) != nullptr) add_slots(section, slots);
  return slots;
}

std::vector<IndirectFunction> indirect_functions(const ElfFile& file,
                                                 std::span<const ElfSymbol> symbols) {
  std::vector<IndirectFunction> found;
  for (const ElfSymbol& symbol : symbols)
    if (symbol.is_resolver) add_implementations(file, symbol, found);
  std::ranges::sort(found);
  const auto repeated = std::ranges::unique(found);
  found.erase(repeated.begin(), repeated.end());
  return found;
}

}  // namespace tailtrace
