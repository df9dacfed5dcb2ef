#include "decoder/symbols/eh_frame.h"

#include <dwarf.h>
#include <gelf.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "decoder/base/bytes.h"

namespace tailtrace {
namespace {

// How the entries that refer to a common information entry (CIE) have addresses.
constexpr unsigned kRelativeInFour_bytes = DW_EH_PE_pcrel | DW_EH_PE_sdata4;
constexpr unsigned kRelativeInEight_bytes = DW_EH_PE_pcrel | DW_EH_PE_sdata8;

std::size_t size_of_pointer(unsigned encoding) {
  switch (encoding & 0x07) {
    case DW_EH_PE_udata4:
      return 4;
    case DW_EH_PE_absptr:
    case DW_EH_PE_udata8:
      return 8;
    default:
      return 2;
  }
}

// System V ABI, LSB core, "Augmentation String Format". 0: not told.
unsigned encoding_of(const Dwarf_CIE& cie) {
  const ByteSpan data(cie.augmentation_data, cie.augmentation_data_size);
  std::size_t at = 0;
  for (const char c : std::string_view(cie.augmentation)) {
    if (at >= data.size()) return 0;
    if (c == 'R') return data[at];
    if (c == 'L') ++at;
    if (c == 'P') at += 1 + size_of_pointer(data[at]);
  }
  return 0;
}

std::optional<EhFrame> frame_of(const Dwarf_FDE& fde, unsigned encoding, std::uint64_t address) {
  const ByteSpan bytes(fde.start, fde.end);
  EhFrame frame;
  if (encoding == kRelativeInFour_bytes && bytes.size() >= 8) {
    frame.begin = address + static_cast<std::uint64_t>(load<std::int32_t>(bytes));
    frame.end = frame.begin + load<std::uint32_t>(bytes, 4);
  } else if (encoding == kRelativeInEight_bytes && bytes.size() >= 16) {
    frame.begin = address + load<std::uint64_t>(bytes);
    frame.end = frame.begin + load<std::uint64_t>(bytes, 8);
  }
  if (frame.end <= frame.begin) return std::nullopt;
  return frame;
}

void read_section(Elf* elf, Elf_Scn* section, const GElf_Shdr& header,
                  std::vector<EhFrame>& frames) {
  Elf_Data* data = elf_rawdata(section, nullptr);
  if (data == nullptr || data->d_buf == nullptr) return;
  const auto* ident = reinterpret_cast<const unsigned char*>(elf_getident(elf, nullptr));
  const auto* begin = static_cast<const std::uint8_t*>(data->d_buf);
  std::unordered_map<Dwarf_Off, unsigned> encodings;  // by CIE
  Dwarf_Off at = 0, next = 0;
  Dwarf_CFI_Entry entry;
  while (dwarf_next_cfi(ident, data, true, at, &next, &entry) == 0 && next > at) {
    if (dwarf_cfi_cie_p(&entry)) {
      encodings[at] = encoding_of(entry.cie);
    } else if (auto cie = encodings.find(entry.fde.CIE_pointer); cie != encodings.end()) {
      const auto offset = static_cast<std::uint64_t>(entry.fde.start - begin);
      if (auto frame = frame_of(entry.fde, cie->second, header.sh_addr + offset))
        frames.push_back(*frame);
    }
    at = next;
  }
}

}  // namespace

std::vector<EhFrame> eh_frames(Elf* elf) {
  std::vector<EhFrame> frames;
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return frames;
  for (Elf_Scn* s = elf_nextscn(elf, nullptr); s != nullptr; s = elf_nextscn(elf, s)) {
    GElf_Shdr header;
    if (gelf_getshdr(s, &header) == nullptr || header.sh_type == SHT_NOBITS) continue;
    const char* name = elf_strptr(elf, names, header.sh_name);
    if (name != nullptr && std::string_view(name) == ".eh_frame")
      read_section(elf, s, header, frames);
  }
  std::ranges::sort(frames, {}, &EhFrame::begin);
  frames.shrink_to_fit();
  return frames;
}

const EhFrame* eh_frame_at(const std::vector<EhFrame>& frames, std::uint64_t address) {
  auto after = std::ranges::upper_bound(frames, address, {}, &EhFrame::begin);
  if (after == frames.begin() || address >= std::prev(after)->end) return nullptr;
  return &*std::prev(after);
}

}  // namespace tailtrace
