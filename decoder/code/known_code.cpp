#include "decoder/code/known_code.h"

#include <algorithm>

#include "decoder/base/types.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t kMostPages = 1 << 20;

std::uint64_t to_next_page(Address at) { return kPage_bytes - at.value % kPage_bytes; }

}  // namespace

KnownCode compare_code(const CodeImage& image, Address begin, ByteSpan bytes) {
  bool all = true;
  for (std::uint64_t at = 0; at < bytes.size();) {
    ByteSpan known = image.at(begin + at, bytes.size() - at, image.newest());
    if (known.empty()) {
      all = false;
      at += to_next_page(begin + at);
      continue;
    }
    // It may be the very same memory.
    if (known.data() != bytes.data() + at &&
        !std::equal(known.begin(), known.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at)))
      return KnownCode::kOther;
    at += known.size();
  }
  return all ? KnownCode::kSame : KnownCode::kNothing;
}

bool shows_any_code(const CodeImage& image, Address begin, Address end) {
  if ((end - begin) / kPage_bytes > kMostPages) return !image.empty();
  for (Address at = begin; at < end; at = at + to_next_page(at))
    if (!image.at(at, 1, image.newest()).empty()) return true;
  return false;
}

}  // namespace tailtrace
