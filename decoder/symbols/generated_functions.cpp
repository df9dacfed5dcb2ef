#include "decoder/symbols/generated_functions.h"

#include <algorithm>
#include <iterator>

#include "decoder/base/text.h"

namespace tailtrace {

bool GeneratedFunctions::add(Address begin, std::uint64_t size_bytes, std::string_view name,
                             ByteSpan code) {
  if (size_bytes == 0 || name.empty() || names_.size() >= kMaxFunctions) return false;
  const Address end = begin + size_bytes;
  name = name.substr(0, kMaxName_bytes);
  if (end <= begin || names_bytes_ + name.size() > kMaxNames_bytes) return false;
  names_bytes_ += name.size();
  const auto made = static_cast<std::uint32_t>(made_.size());
  made_.push_back({begin, names_.size(), code});
  names_.push_back(printable(name));
  split_at(begin);
  split_at(end);
  auto it = stretches_.lower_bound(begin);
  for (Address at = begin; at < end; ++it) {
    const Address hole_end = it == stretches_.end() ? end : std::min(end, it->first);
    if (at < hole_end) it = stretches_.emplace_hint(it, at, Stretch{hole_end, {}});
    put(it->second, made);
    at = it->second.end;
  }
  return true;
}

// After this no stretch crosses `address`.
void GeneratedFunctions::split_at(Address address) {
  auto after = stretches_.upper_bound(address);
  if (after == stretches_.begin()) return;
  auto& [begin, stretch] = *std::prev(after);
  if (begin == address || stretch.end <= address) return;
  stretches_.emplace_hint(after, address, stretch);
  stretch.end = address;
}

void GeneratedFunctions::put(Stretch& stretch, std::uint32_t made) {
  any_replaced_ |= !stretch.made.empty();
  if (stretch.made.size() == kMaxInPlace) stretch.made.erase(stretch.made.begin());
  stretch.made.push_back(made);
}

void GeneratedFunctions::drop_code() {
  for (Made& made : made_) made.code = {};
  kept_.clear();
}

GeneratedFunctions::Cover GeneratedFunctions::cover_of(Address begin, const Stretch& stretch,
                                                       std::uint32_t made) const {
  return {&names_[made_[made].name], made_[made].entry,         begin, stretch.end,
          stretch.made.size() > 1,   !made_[made].code.empty(), made};
}

const std::pair<const Address, GeneratedFunctions::Stretch>* GeneratedFunctions::stretch_of(
    Address address) const {
  auto after = stretches_.upper_bound(address);
  if (after == stretches_.begin()) return nullptr;
  const auto& found = *std::prev(after);
  return address < found.second.end ? &found : nullptr;
}

std::optional<GeneratedFunctions::Cover> GeneratedFunctions::only_earlier(Address address) const {
  const auto* found = stretch_of(address);
  if (found == nullptr || found->second.made.size() != 2) return std::nullopt;
  return cover_of(found->first, found->second, found->second.made.front());
}

GeneratedFunctions::Cover GeneratedFunctions::cover(Address address) const {
  return cover(address, nullptr);
}

GeneratedFunctions::Cover GeneratedFunctions::cover(Address address, const Compare& compare) const {
  Cover cover;
  auto after = stretches_.upper_bound(address);
  if (after != stretches_.end()) cover.end = after->first;
  if (after == stretches_.begin()) return cover;
  const auto& [begin, stretch] = *std::prev(after);
  cover.begin = stretch.end;
  if (address >= stretch.end) return cover;
  std::uint32_t found = stretch.made.back();
  double most = 0.5;  // less in common is another function
  for (auto made = stretch.made.rbegin(); compare && made != stretch.made.rend(); ++made) {
    const Likeness like = compare(made_[*made].entry, made_[*made].code);
    if (like.known_bytes == 0) continue;
    const double share =
        static_cast<double>(like.same_bytes) / static_cast<double>(like.known_bytes);
    if (share <= most) continue;
    most = share;
    found = *made;
  }
  return cover_of(begin, stretch, found);
}

}  // namespace tailtrace
