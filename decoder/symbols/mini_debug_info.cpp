#include "decoder/symbols/mini_debug_info.h"

#include <gelf.h>
#include <lzma.h>

#include <algorithm>
#include <string_view>

namespace tailtrace {
namespace {

constexpr std::size_t kMost_bytes = 1u << 28;      // of symbols
constexpr std::uint64_t kMostMemory = 1ull << 28;  // for unpacking; xz -9 needs a quarter of that

Elf_Data* packed_file(Elf* elf) {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return nullptr;
  for (Elf_Scn* s = elf_nextscn(elf, nullptr); s != nullptr; s = elf_nextscn(elf, s)) {
    GElf_Shdr header;
    if (gelf_getshdr(s, &header) == nullptr) continue;
    const char* name = elf_strptr(elf, names, header.sh_name);
    if (name != nullptr && name == std::string_view(".gnu_debugdata"))
      return elf_rawdata(s, nullptr);
  }
  return nullptr;
}

class XzStream {
 public:
  explicit XzStream(ByteSpan packed) {
    stream_.next_in = packed.data();
    stream_.avail_in = packed.size();
    is_good_ = lzma_stream_decoder(&stream_, kMostMemory, 0) == LZMA_OK;
  }
  ~XzStream() { lzma_end(&stream_); }
  XzStream(const XzStream&) = delete;
  XzStream& operator=(const XzStream&) = delete;

  // All of it; empty when it is no such stream, is cut short, or is longer than symbols are.
  Bytes unpack() {
    Bytes bytes;
    std::size_t used = 0;
    lzma_ret state = is_good_ ? LZMA_OK : LZMA_PROG_ERROR;
    while (state == LZMA_OK && used < kMost_bytes) {
      bytes.resize(std::max<std::size_t>(2 * used, stream_.avail_in));
      stream_.next_out = bytes.data() + used;
      stream_.avail_out = bytes.size() - used;
      state = lzma_code(&stream_, LZMA_FINISH);
      used = bytes.size() - stream_.avail_out;
    }
    bytes.resize(state == LZMA_STREAM_END ? used : 0);
    return bytes;
  }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool is_good_ = false;
};

}  // namespace

Bytes mini_debug_info(Elf* elf) {
  const Elf_Data* packed = packed_file(elf);
  if (packed == nullptr || packed->d_buf == nullptr || packed->d_size == 0) return {};
  return XzStream({static_cast<const std::uint8_t*>(packed->d_buf), packed->d_size}).unpack();
}

}  // namespace tailtrace
