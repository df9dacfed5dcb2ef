// What libipt, used directly, makes of a trace: the judge of what is written as PT.
//
// Threading: pure.
#pragma once

#include <string>
#include <vector>

#include "decoder/base/bytes.h"
#include "decoder/code/code_image.h"

namespace tailtrace {

struct LibiptWalk {
  std::vector<Address> instructions;
  // "ADDRESS-INDEX: event" for enabled, disabled, overflow ...; the index counts instructions.
  std::vector<std::string> events;
  std::vector<std::string> errors;
};

// Decodes the newest code of `image` from the first PSB on, synchronising again after errors.
LibiptWalk walk_with_libipt(ByteSpan trace, const CodeImage& image);

}  // namespace tailtrace
