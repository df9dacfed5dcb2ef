#include "decoder/symbols/packed_sections.h"

#include <gelf.h>

#include <algorithm>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

#include "decoder/base/no_signals.h"

namespace tailtrace {
namespace {

// Less is unpacked before a thread has begun.
constexpr std::uint64_t kWorthAThread_bytes = 1 << 14;

struct Packed {
  Elf_Scn* section = nullptr;
  std::uint64_t size_bytes = 0;
};

void hide(Elf_Scn* section, GElf_Shdr header) {
  header.sh_type = SHT_NOBITS;
  gelf_update_shdr(section, &header);
}

std::vector<Packed> packed_sections(Elf* elf, std::span<const std::string_view> unused) {
  std::vector<Packed> found;
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return found;
  for (Elf_Scn* s = elf_nextscn(elf, nullptr); s != nullptr; s = elf_nextscn(elf, s)) {
    GElf_Shdr header;
    if (gelf_getshdr(s, &header) == nullptr || (header.sh_flags & SHF_COMPRESSED) == 0) continue;
    const char* name = elf_strptr(elf, names, header.sh_name);
    if (name == nullptr || !std::string_view(name).starts_with(".debug_")) continue;
    if (std::ranges::find(unused, name) != unused.end())
      hide(s, header);
    else
      found.push_back({s, header.sh_size});
  }
  return found;
}

void unpack(Elf_Scn* section) { elf_compress(section, 0, 0); }

}  // namespace

// libelf keeps what it unpacks, and how it failed, with each section or thread.
void unpack_sections(Elf* elf, std::span<const std::string_view> unused) {
  const std::vector<Packed> packed = packed_sections(elf, unused);
  const auto largest = std::ranges::max_element(packed, {}, &Packed::size_bytes);
  if (largest == packed.end() || largest->size_bytes < kWorthAThread_bytes) return;
  std::thread helper;
  try {
    NoSignals inherited;
    helper = std::thread(unpack, largest->section);
  } catch (const std::system_error&) {
    return;  // libdw unpacks by itself what is not
  }
  for (const Packed& one : packed)
    if (one.section != largest->section) unpack(one.section);
  helper.join();
}

}  // namespace tailtrace
