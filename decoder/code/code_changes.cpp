#include "decoder/code/code_changes.h"

#include <algorithm>

namespace tailtrace {

bool CodeChanges::touches(Address begin, Address end) const {
  auto next = std::ranges::upper_bound(stretches_, begin, {}, &CodeImage::Stretch::end);
  return next != stretches_.end() && next->begin < end;
}

}  // namespace tailtrace
