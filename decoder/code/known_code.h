// What an image of code shows at its newest, beside what is found at an address now.
//
// Threading: pure functions.
#pragma once

#include "decoder/code/code_image.h"

namespace tailtrace {

enum class KnownCode {
  kNothing,  // at a part of it at least; what is known of the rest is the same
  kSame,
  kOther,
};

KnownCode compare_code(const CodeImage& image, Address begin, ByteSpan bytes);

// Whether it shows anything between two addresses. Mappings begin at pages, so each page's first
// byte is asked for; of more than 2^20 pages, which hostile input may name, none.
bool shows_any_code(const CodeImage& image, Address begin, Address end);

}  // namespace tailtrace
