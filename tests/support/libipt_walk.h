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
  // "COUNT: event" for enabled, disabled, overflow ...; so many instructions were before it.
  std::vector<std::string> events;
  // How many instructions were before each event.
  std::vector<std::size_t> event_at;
  std::vector<std::string> errors;
};

// Decodes the newest code of `image` from the first PSB on, synchronising again after errors. More
// instructions than `limit_insns` are an error that ends the walk.
LibiptWalk walk_with_libipt(ByteSpan trace, const CodeImage& image,
                            std::size_t limit_insns = 100'000'000);

}  // namespace tailtrace
