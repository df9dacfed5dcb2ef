#include "plugin/server/rsp/pack.h"

#include <libdeflate.h>

namespace tailtrace::rsp {

std::string pack(std::string_view plain) {
  constexpr int kFastest = 1;
  libdeflate_compressor* packer = libdeflate_alloc_compressor(kFastest);
  std::string packed(libdeflate_zlib_compress_bound(packer, plain.size()), '\0');
  packed.resize(
      libdeflate_zlib_compress(packer, plain.data(), plain.size(), packed.data(), packed.size()));
  libdeflate_free_compressor(packer);
  return packed;
}

}  // namespace tailtrace::rsp
