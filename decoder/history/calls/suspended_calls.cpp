#include "decoder/history/calls/suspended_calls.h"

#include <algorithm>

namespace tailtrace {

void SuspendedCalls::open(std::uint32_t segment, Address behind) {
  if (place_of(segment) != 0) return;
  auto [place, is_new] = numbers_.try_emplace(behind, static_cast<std::uint32_t>(open_.size()));
  if (is_new) {
    open_.emplace_back();
    behind_.push_back(behind);
  }
  if (segment >= places_.size()) places_.resize(segment + 1);
  places_[segment] = place->second;
  open_[place->second].push_back(segment);
}

void SuspendedCalls::close(std::uint32_t segment) {
  std::vector<std::uint32_t>& open = open_[place_of(segment)];
  auto newest = std::find(open.rbegin(), open.rend(), segment);
  if (newest != open.rend()) open.erase(std::prev(newest.base()));
}

void SuspendedCalls::unwind(std::uint32_t from, std::uint32_t to) {
  for (; from != to && from != 0 && stacks_.budget().take(); from = stacks_.at(from).caller)
    close(from);
}

// As much work as there was to open them: there may be many gaps.
void SuspendedCalls::clear() {
  numbers_ = {};
  open_.assign(1, {});
  behind_.assign(1, {});
  known_from_ = places_.size();
}

bool SuspendedCalls::goes_on_at(std::uint32_t segment, Address behind) const {
  if (place_of(segment) == 0 || stacks_.at(segment).later != 0) return false;
  auto place = numbers_.find(behind);
  return place != numbers_.end() && place->second == place_of(segment);
}

std::uint32_t SuspendedCalls::newest_at(Address behind, std::uint32_t function) const {
  auto place = numbers_.find(behind);
  if (place == numbers_.end() || open_[place->second].empty()) return 0;
  const std::uint32_t newest = open_[place->second].back();
  return stacks_.switched(newest, function) ? 0 : newest;
}

void SuspendedCalls::move(std::uint32_t from, std::uint32_t call) {
  std::uint32_t moved = 0;
  std::int32_t shift = 0;
  while (stacks_.budget().take()) {
    const std::uint32_t left = callee_left_in(call, stacks_.at(from).function);
    const std::uint32_t part = left == 0 ? 0 : part_behind(from, place_of(left));
    if (part <= left || stacks_.at(part).earlier == left) break;
    shift = stacks_.at(left).level - stacks_.at(part).level;
    splice(part, left);
    moved = part;
    call = left;
    from = part - 1;
  }
  for (; moved != 0 && moved <= stacks_.newest() && stacks_.budget().take(); ++moved)
    stacks_.at(moved).level += shift;
}

// The last segment of what was called, which is inside a call itself; 0: none.
std::uint32_t SuspendedCalls::callee_left_in(std::uint32_t call, std::uint32_t function) {
  std::uint32_t caller = call;
  for (std::uint32_t callee = call + 1; callee <= stacks_.newest(); ++callee) {
    if (stacks_.at(callee).caller != caller || !stacks_.budget().take()) return 0;
    while (stacks_.at(callee).later != 0 && stacks_.budget().take())
      callee = stacks_.at(callee).later;
    if (!stacks_.switched(callee, function)) return place_of(callee) != 0 ? callee : 0;
    caller = callee;  // it may have jumped on
  }
  return 0;
}

// The newest part of a call, up to the given one, that goes on behind a call at the place; 0: none.
std::uint32_t SuspendedCalls::part_behind(std::uint32_t part, std::uint32_t place) {
  while (stacks_.at(part).earlier != 0 && stacks_.budget().take()) {
    if (place_of(stacks_.at(part).earlier) == place) return part;
    part = stacks_.at(part).earlier;
  }
  return 0;
}

void SuspendedCalls::splice(std::uint32_t part, std::uint32_t earlier) {
  const std::uint32_t mistaken = stacks_.at(part).earlier;
  stacks_.at(mistaken).later = 0;
  open_[place_of(mistaken)].push_back(mistaken);
  stacks_.at(part).earlier = earlier;
  stacks_.at(earlier).later = part;
  close(earlier);
  const KeptSegment of = stacks_.at(earlier);
  for (; part != 0 && stacks_.budget().take(); part = stacks_.at(part).later) {
    stacks_.at(part).caller = of.caller;
    stacks_.at(part).tail_called = of.tail_called;
  }
}

}  // namespace tailtrace
