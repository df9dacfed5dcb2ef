#include "decoder/pt/path_words.h"

namespace tailtrace::pt {

PathWords PathWords::copy() const {
  PathWords all;
  if (size_ != 0) std::copy_n(words_.get(), size_, all.room(size_));
  all.grow(size_);
  return all;
}

void PathWords::reallocate(std::size_t capacity) {
  auto words = std::make_unique_for_overwrite<std::uint32_t[]>(capacity);
  std::copy(words_.get(), words_.get() + size_, words.get());
  words_ = std::move(words);
  capacity_ = capacity;
}

}  // namespace tailtrace::pt
