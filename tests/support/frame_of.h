// A frame of which nothing but the code is known.
//
// Threading: pure functions.
#pragma once

#include <utility>

#include "decoder/history/snapshot.h"

namespace tailtrace {

inline ThreadFrame frame_of(std::shared_ptr<const CodeImage> code) {
  ThreadFrame frame;
  frame.code = std::move(code);
  return frame;
}

}  // namespace tailtrace
