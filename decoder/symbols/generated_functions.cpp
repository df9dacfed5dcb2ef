#include "decoder/symbols/generated_functions.h"

#include <algorithm>

#include "decoder/base/text.h"

namespace tailtrace {

bool GeneratedFunctions::add(Address begin, std::uint64_t size_bytes, std::string_view name) {
  if (size_bytes == 0 || name.empty() || names_.size() >= kMaxFunctions) return false;
  const Address end = begin + size_bytes;
  name = name.substr(0, kMaxName_bytes);
  if (end <= begin || names_bytes_ + name.size() > kMaxNames_bytes) return false;
  names_bytes_ += name.size();
  clear(begin, end);
  stretches_[begin] = {end, begin, names_.size()};
  names_.push_back(printable(name));
  return true;
}

// Takes [begin, end) out of all stretches.
void GeneratedFunctions::clear(Address begin, Address end) {
  auto it = stretches_.upper_bound(begin);
  if (it != stretches_.begin() && begin < std::prev(it)->second.end) --it;
  while (it != stretches_.end() && it->first < end) {
    const auto [first, stretch] = *it;
    it = stretches_.erase(it);
    if (first < begin) stretches_[first] = {begin, stretch.entry, stretch.name};
    if (end < stretch.end) stretches_[end] = stretch;
  }
}

GeneratedFunctions::Cover GeneratedFunctions::cover(Address address) const {
  Cover cover;
  auto after = stretches_.upper_bound(address);
  if (after != stretches_.end()) cover.end = after->first;
  if (after == stretches_.begin()) return cover;
  const auto& [begin, stretch] = *std::prev(after);
  cover.begin = stretch.end;
  if (address >= stretch.end) return cover;
  return {&names_[stretch.name], stretch.entry, begin, stretch.end};
}

}  // namespace tailtrace
