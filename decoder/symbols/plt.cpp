#include "decoder/symbols/plt.h"

#include <fmt/format.h>
#include <gelf.h>

#include <cstring>
#include <string_view>
#include <unordered_map>

#include "decoder/base/bytes.h"

namespace tailtrace {
namespace {

constexpr std::size_t kMaxRelocations = 1 << 22;

// From the address of a slot to the name of the function whose address it holds.
using Slots = std::unordered_map<std::uint64_t, std::string>;

std::string symbol_name(Elf* elf, Elf_Scn* table, std::size_t index) {
  GElf_Shdr header;
  GElf_Sym symbol;
  Elf_Data* data = table == nullptr ? nullptr : elf_getdata(table, nullptr);
  if (data == nullptr || gelf_getshdr(table, &header) == nullptr || index > 0x7fffffff ||
      gelf_getsym(data, static_cast<int>(index), &symbol) == nullptr)
    return {};
  const char* name = elf_strptr(elf, header.sh_link, symbol.st_name);
  return name == nullptr ? "" : name;
}

// What a slot will hold: a named function, or what the resolver at an address picks.
std::string slot_name(Elf* elf, Elf_Scn* table, const GElf_Rela& rela) {
  switch (GELF_R_TYPE(rela.r_info)) {
    case R_X86_64_JUMP_SLOT:
    case R_X86_64_GLOB_DAT:
      return symbol_name(elf, table, GELF_R_SYM(rela.r_info));
    case R_X86_64_IRELATIVE:
      return fmt::format("*ABS*+{:#x}", static_cast<std::uint64_t>(rela.r_addend));
    default:
      return {};
  }
}

void read_slots(Elf* elf, Elf_Scn* section, const GElf_Shdr& header, Slots& slots) {
  Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr || header.sh_entsize == 0) return;
  Elf_Scn* table = elf_getscn(elf, header.sh_link);
  std::size_t count = data->d_size / header.sh_entsize;
  for (std::size_t i = 0; i < count && slots.size() < kMaxRelocations; ++i) {
    GElf_Rela rela;
    if (gelf_getrela(data, static_cast<int>(i), &rela) == nullptr) return;
    std::string name = slot_name(elf, table, rela);
    if (!name.empty()) slots.emplace(rela.r_offset, std::move(name));
  }
}

bool is_stub_section(std::string_view name) {
  return name == ".plt" || name == ".plt.sec" || name == ".plt.got";
}

// Where in an entry is `jmp *DISPLACEMENT(%rip)` (ff 25), perhaps with a bnd prefix, behind an
// endbr64 or not? Gives the slot's address; 0 when the entry has no such jump.
std::uint64_t slot_of(ByteSpan entry, std::uint64_t address) {
  static constexpr std::uint8_t kEndbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
  std::size_t at = 0;
  if (entry.size() >= 4 && std::memcmp(entry.data(), kEndbr, 4) == 0) at = 4;
  if (at < entry.size() && entry[at] == 0xf2) ++at;
  if (at + 6 > entry.size() || entry[at] != 0xff || entry[at + 1] != 0x25) return 0;
  auto displacement = load<std::int32_t>(entry, at + 2);
  return address + at + 6 + static_cast<std::uint64_t>(static_cast<std::int64_t>(displacement));
}

void name_stubs(Elf_Scn* section, const GElf_Shdr& header, const Slots& slots,
                std::vector<ElfSymbol>& symbols) {
  Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr || data->d_buf == nullptr) return;
  ByteSpan bytes(static_cast<const std::uint8_t*>(data->d_buf), data->d_size);
  std::size_t size = header.sh_entsize == 8 ? 8 : 16;
  for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
    auto slot = slots.find(slot_of(bytes.subspan(at, size), header.sh_addr + at));
    if (slot == slots.end() || symbols.size() >= ElfFile::kMaxSymbols) continue;
    symbols.push_back({header.sh_addr + at, size, slot->second + "@plt", ~0ull});
  }
}

}  // namespace

void add_plt_symbols(Elf* elf, std::vector<ElfSymbol>& symbols) {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return;
  Slots slots;
  std::vector<std::pair<Elf_Scn*, GElf_Shdr>> stubs;
  for (Elf_Scn* s = elf_nextscn(elf, nullptr); s != nullptr; s = elf_nextscn(elf, s)) {
    GElf_Shdr header;
    if (gelf_getshdr(s, &header) == nullptr) continue;
    const char* name = elf_strptr(elf, names, header.sh_name);
    if (header.sh_type == SHT_RELA && (header.sh_flags & SHF_ALLOC) != 0)
      read_slots(elf, s, header, slots);
    if (header.sh_type == SHT_PROGBITS && name != nullptr && is_stub_section(name))
      stubs.emplace_back(s, header);
  }
  for (auto& [section, header] : stubs) name_stubs(section, header, slots, symbols);
}

}  // namespace tailtrace
