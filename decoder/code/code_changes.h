// CodeChanges: whether code that was executed earlier is still what the newest code is there.
//
// Tools that see only the code of today believe all of a history ran that: what ran something else
// must be kept from them.
//
// Threading: immutable; the image must outlive it.
#pragma once

#include <vector>

#include "decoder/code/code_image.h"

namespace tailtrace {

class CodeChanges {
 public:
  explicit CodeChanges(const CodeImage& image) : image_(image), stretches_(image.changed()) {}

  bool empty() const { return stretches_.empty(); }
  // Whether [begin, end) is not any more what it was in epoch `then`.
  bool since(Epoch then, Address begin, Address end) const {
    return !empty() && touches(begin, end) && !image_.same(begin, end, then, image_.newest());
  }

 private:
  bool touches(Address begin, Address end) const;

  const CodeImage& image_;
  std::vector<CodeImage::Stretch> stretches_;  // only here it takes looking at bytes
};

}  // namespace tailtrace
