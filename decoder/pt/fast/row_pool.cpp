#include "decoder/pt/fast/row_pool.h"

#include <immintrin.h>

#include <algorithm>
#include <functional>
#include <span>
#include <thread>

namespace tailtrace::pt {

void BriefLock::lock() {
  constexpr int kPatience = 256;  // the holder may not be running
  int turns = 0;
  while (is_taken_.test_and_set(std::memory_order_acquire))
    while (is_taken_.test(std::memory_order_relaxed))
      ++turns % kPatience == 0 ? std::this_thread::yield() : _mm_pause();
}

void RowPool::join(Member& member, std::span<const Rows::State> kept) {
  std::lock_guard moving(moving_);
  for (const Rows::State& state : kept) member.kept.push(key_of(member, state.ip, state.mode));
  members_.insert(std::ranges::upper_bound(members_, &member, std::less<>()), &member);
}

std::vector<Rows::State> RowPool::leave(Member& member) {
  std::lock_guard moving(moving_);
  std::erase(members_, &member);
  member.part = {};
  return take_kept(member);
}

std::vector<Rows::State> RowPool::take_kept(Member& member) const {
  std::vector<Rows::State> states;
  member.kept.settle();
  for (StateKey key : member.kept.keys()) states.push_back(rows_.state(key));
  member.kept.clear();
  return states;
}

StateKey RowPool::key_of(Member& member, std::uint64_t ip, CodeMode mode) {
  if (const StateKey key = rows_.find_key(ip, mode)) return key;
  std::lock_guard hold(lock_);
  if (!rows_.takes_more()) return 0;
  if (!Rows::has_room(member.part, 0)) rows_.extend(member.part);
  const StateKey key = rows_.key_of(member.part, ip, mode);
  note_crowd();
  return key;
}

void RowPool::note_detours(std::size_t count) {
  std::lock_guard hold(lock_);
  rows_.note_detours(count);
  note_crowd();
}

// Nobody is at work, nor begins before it is done. REQUIRES: moving_ is held.
template <class Change>
void RowPool::change_alone(Change change) {
  is_wanted_.store(true, std::memory_order_relaxed);
  std::vector<std::unique_lock<std::mutex>> stopped;
  for (Member* member : members_) stopped.emplace_back(member->at_work);
  change();
  is_crowded_.store(rows_.is_crowded(), std::memory_order_relaxed);
  is_wanted_.store(false, std::memory_order_relaxed);
}

void RowPool::make_room() {
  std::lock_guard moving(moving_);
  if (!is_crowded_.load(std::memory_order_relaxed)) return;
  change_alone([this] {
    std::vector<std::span<StateKey>> kept;
    for (Member* member : members_) kept.push_back(member->kept.keys());
    rows_.make_room(kept);
  });
}

void RowPool::drop_if_full() {
  std::lock_guard moving(moving_);
  if (is_full()) change_alone([this] { drop(); });
}

// What is kept goes over into the new rows.
void RowPool::drop() {
  std::vector<std::vector<Rows::State>> kept;
  for (Member* member : members_) {
    kept.push_back(take_kept(*member));
    member->part = {};
  }
  rows_.drop();
  for (std::size_t i = 0; i < members_.size(); ++i) {
    for (const Rows::State& state : kept[i])
      members_[i]->kept.push(key_of(*members_[i], state.ip, state.mode));
    // Without detours tables grow, and no key changes.
    if (rows_.is_crowded()) rows_.make_room({});
  }
}

}  // namespace tailtrace::pt
