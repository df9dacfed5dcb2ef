#include "decoder/symbols/packed_sections.h"

#include <gelf.h>
#include <libdeflate.h>
#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <system_error>
#include <thread>

#include "decoder/base/bytes.h"
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

// libelf keeps the bytes of a section twice, as they are in the file and as this machine has them,
// and hands out what it keeps.
void replace_bytes(Elf_Scn* section, std::span<std::uint8_t> bytes) {
  GElf_Shdr header;
  Elf_Data* kept[] = {elf_rawdata(section, nullptr), elf_getdata(section, nullptr)};
  if (gelf_getshdr(section, &header) == nullptr) return;
  header.sh_flags &= ~std::uint64_t{SHF_COMPRESSED};
  header.sh_size = bytes.size();
  gelf_update_shdr(section, &header);
  for (Elf_Data* data : kept) {
    if (data == nullptr) continue;
    data->d_type = ELF_T_BYTE;
    data->d_buf = bytes.data();
    data->d_size = bytes.size();
  }
}

bool inflate(std::span<const std::uint8_t> packed, std::span<std::uint8_t> bytes) {
  libdeflate_decompressor* unpacker = libdeflate_alloc_decompressor();
  const libdeflate_result done = libdeflate_zlib_decompress(unpacker, packed.data(), packed.size(),
                                                            bytes.data(), bytes.size(), nullptr);
  libdeflate_free_decompressor(unpacker);
  return done == LIBDEFLATE_SUCCESS;
}

bool unpack(std::uint32_t type, std::span<const std::uint8_t> packed,
            std::span<std::uint8_t> bytes) {
  constexpr std::uint32_t kZstd = 2;  // ELFCOMPRESS_ZSTD, which the C library here does not know
  if (type == ELFCOMPRESS_ZLIB) return inflate(packed, bytes);
  return type == kZstd &&
         ZSTD_decompress(bytes.data(), bytes.size(), packed.data(), packed.size()) == bytes.size();
}

// Returns what it was unpacked to; null where it stays as it is.
UnpackedBytes unpack(Elf_Scn* section) {
  // No deflate stream is longer than that many times; of zstd's those that somebody means.
  constexpr std::uint64_t kMostPacked = 1032;
  const Elf_Data* data = elf_rawdata(section, nullptr);
  if (data == nullptr || data->d_size < sizeof(Elf64_Chdr)) return nullptr;
  const std::span packed{static_cast<const std::uint8_t*>(data->d_buf), data->d_size};
  const auto header = load<Elf64_Chdr>(packed);
  if (header.ch_size / kMostPacked > packed.size()) return nullptr;
  UnpackedBytes bytes(new (std::nothrow) std::uint8_t[header.ch_size]);
  const std::span room{bytes.get(), header.ch_size};
  if (bytes == nullptr || !unpack(header.ch_type, packed.subspan(sizeof header), room))
    return nullptr;
  replace_bytes(section, room);
  return bytes;
}

// Not joinable when the system has none: somebody else has to do its work.
template <class Work>
std::thread start_thread(const Work& work) {
  try {
    NoSignals inherited;
    return std::thread(work);
  } catch (const std::system_error&) {
    return {};
  }
}

}  // namespace

std::vector<UnpackedBytes> unpack_sections(Elf* elf, std::span<const std::string_view> unused) {
  const std::vector<Packed> packed = packed_sections(elf, unused);
  std::vector<UnpackedBytes> unpacked(packed.size());
  auto unpack_one = [&](std::size_t i) { unpacked[i] = unpack(packed[i].section); };
  const auto largest = std::ranges::max_element(packed, {}, &Packed::size_bytes);
  const auto aside = static_cast<std::size_t>(largest - packed.begin());
  std::thread helper;
  if (largest != packed.end() && largest->size_bytes >= kWorthAThread_bytes)
    helper = start_thread([&] { unpack_one(aside); });
  for (std::size_t i = 0; i < packed.size(); ++i)
    if (i != aside || !helper.joinable()) unpack_one(i);
  if (helper.joinable()) helper.join();
  return unpacked;
}

}  // namespace tailtrace
