#include "plugin/server/rsp/pack.h"

#include <zlib.h>

#include <cassert>

namespace tailtrace::rsp {

std::string pack(std::string_view plain) {
  uLongf size_bytes = compressBound(plain.size());
  std::string packed(size_bytes, '\0');
  const int done =
      compress2(reinterpret_cast<Bytef*>(packed.data()), &size_bytes,
                reinterpret_cast<const Bytef*>(plain.data()), plain.size(), Z_BEST_SPEED);
  assert(done == Z_OK);  // there is room, and it would abort where there is no memory
  packed.resize(size_bytes);
  return packed;
}

}  // namespace tailtrace::rsp
