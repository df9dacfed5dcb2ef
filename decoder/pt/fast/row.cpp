#include "decoder/pt/fast/row.h"

#include <algorithm>
#include <numeric>

namespace tailtrace::pt {
namespace {

template <class T>
LargeArray<T> with_large_pages(const LargeArray<T>& array, std::size_t used) {
  LargeArray<T> large(array.size());
  std::copy_n(array.data(), used, large.data());
  return large;
}

}  // namespace

Rows::Rows()
    : states_(kMaxStates),
      keys_(kMaxStates),
      outcomes_(kMaxSlots, PageSize::kSmall),
      owners_(kMaxSlots, PageSize::kSmall),
      aside_(kLeastAside),
      targets_(kLeastTargets),
      beside_(EffectBook::kMaxEffects, PageSize::kSmall),
      book_(std::make_shared<EffectBook>()) {}

bool Rows::is_full() const {
  // What one packet may add is left free.
  constexpr std::size_t kMargin = EffectBook::kPartEffects;
  static_assert(kMargin >= kPartStates);
  return states_.size() + kMargin >= kMaxStates || outcome_count_ + kMargin >= kMaxOutcomes ||
         targets_.size() + kMargin >= kMaxTargets ||
         next_window_ + kNewWindow * kMargin + kWindow_slots >= kMaxSlots ||
         book_->size() + kMargin >= EffectBook::kMaxEffects ||
         book_->size_bytes() >= EffectBook::kMax_bytes;
}

bool Rows::takes_more() const {
  return !is_full() && targets_.has_room() && aside_.has_room() &&
         std::ranges::all_of(numbers_, &AddressTable::has_room);
}

void Rows::drop() { *this = Rows(); }

// --- States ----------------------------------------------------------------------------------

// All get windows at once, named or not.
void Rows::extend(Part& part) {
  book_->extend(part.effects);
  if (part.states_end - part.state >= kRowStates) return;
  if (part.states_end != states_.size()) part.state = static_cast<StateNumber>(states_.size());
  // Before anybody looks there: memory that is read first is faulted in twice.
  std::fill_n(&outcomes_[next_window_ + kWindow_slots], kPartStates * kNewWindow, 0);
  for (std::size_t i = 0; i < kPartStates; ++i) {
    owners_[next_window_] = static_cast<StateNumber>(keys_.size());
    keys_.push_back(static_cast<StateKey>(next_window_));
    next_window_ += kNewWindow;
  }
  states_.grow(kPartStates);
  part.states_end = static_cast<StateNumber>(states_.size());
}

StateKey Rows::find_key(std::uint64_t ip, CodeMode mode) const {
  const StateNumber number = numbers_[static_cast<std::size_t>(mode)].find(ip);
  return number == AddressTable::kNone ? 0 : keys_[number];
}

StateKey Rows::key_of(Part& part, std::uint64_t ip, CodeMode mode) {
  if (const StateKey key = find_key(ip, mode)) return key;
  const StateNumber number = part.state;
  const StateKey key = add_state(part, {ip, mode});
  numbers_[static_cast<std::size_t>(mode)].put(ip, number);
  return key;
}

StateKey Rows::add_state(Part& part, const State& state) {
  states_[part.state] = state;
  return keys_[part.state++];
}

std::uint32_t Rows::add_effect(EffectBook::Part& part, const Effect& effect,
                               std::span<const BranchRecord> records, std::uint64_t counts) {
  std::uint32_t number = book_->add(part, effect, records);
  beside_[number].counts = counts;
  return number;
}

// --- Outcomes: a row lies in the window of its state -------------------------------------------

std::uint64_t Rows::find(StateKey state, std::uint8_t bits) const {
  const std::uint64_t row = load_row(outcomes_[slot_of(state, bits)]);
  if ((row & RowBits::kTagMask) == bits || row == 0) return row;
  return aside_.find({state, bits});
}

void Rows::put(StateKey state, std::uint8_t bits, std::uint64_t row) {
  ++outcome_count_;
  place(state, row | bits);
}

void Rows::place(StateKey state, std::uint64_t row) {
  const auto bits = static_cast<std::uint8_t>(row & RowBits::kTagMask);
  std::uint64_t& slot = outcomes_[slot_of(state, bits)];
  if (slot == 0)
    publish_row(slot, row);
  else
    aside_.put({state, bits}, row);
}

bool Rows::is_crowded() const {
  return is_scattered() || targets_.is_half_full() ||
         std::ranges::any_of(numbers_, &AddressTable::is_half_full);
}

void Rows::make_room(std::span<const std::span<StateKey>> kept) {
  const bool was_scattered = is_scattered();
  if (targets_.is_half_full()) targets_.grow();
  if (aside_.is_half_full()) aside_.grow();
  for (AddressTable& numbers : numbers_)
    if (numbers.is_half_full()) numbers.grow();
  if (!was_scattered) return;
  take_large_pages();
  open_windows(kept);
}

// Large pages pay when much of them is used: clearing one takes as long as filling in hundreds of
// rows.
void Rows::take_large_pages() {
  if (has_large_pages_ || book_->size() < kManyEffects) return;
  has_large_pages_ = true;
  outcomes_ = with_large_pages(outcomes_, next_window_ + kWindow_slots);
  beside_ = with_large_pages(beside_, book_->size());
}

void Rows::open_windows(std::span<const std::span<StateKey>> kept) {
  // Of the windows that keys name until now.
  const std::vector<StateNumber> owners(owners_.data(), owners_.data() + next_window_);
  auto renamed = [&](StateKey key) { return key < kFirstWindow ? key : keys_[owners[key]]; };
  auto rename_next = [&](std::uint64_t row) {
    return RowBits::with_next(row, renamed(RowBits::next(row)));
  };

  const OutcomesOfStates outcomes = take_outcomes();
  lay_out(outcomes);
  for (StateNumber state = 0; state < states_.size(); ++state)
    for (const std::uint64_t row : outcomes.of(state)) {
      place(keys_[state], rename_next(row));
      if (aside_.is_half_full()) aside_.grow();
    }
  for (const auto& target : targets_.take()) {
    const TargetKey key = target.key();
    targets_.put({renamed(key.state), key.ip, key.kind},
                 rename_next(target.row & ~RowBits::kTagMask));
  }
  // Most push nothing, and are not written.
  for (Beside& of_row : std::span(beside_.data(), book_->size()))
    for (StateKey& key : of_row.pushes.keys)
      if (key != 0) key = renamed(key);
  for (std::span<StateKey> keys : kept) std::ranges::transform(keys, keys.begin(), renamed);

  // So many cost about as much as this did.
  tolerated_detours_ = std::max(kFirstDetours, 4 * book_->size());
  detours_ = 0;
}

// Gives each state another window, in the order in which the states were met.
void Rows::lay_out(const OutcomesOfStates& outcomes) {
  WindowLayout layout(kFirstWindow, kMaxSlots / 2);
  std::vector<std::uint8_t> bits;
  for (StateNumber state = 0; state < states_.size(); ++state) {
    bits.clear();
    for (const std::uint64_t row : outcomes.of(state))
      bits.push_back(static_cast<std::uint8_t>(row & RowBits::kTagMask));
    const std::size_t window = layout.add(bits);
    keys_[state] = static_cast<StateKey>(window);
    owners_[window] = state;
  }
  next_window_ = layout.end();
}

// Calls visit(state's number, row with its tag).
template <class Visit>
void Rows::for_each_outcome(Visit visit) const {
  for (std::size_t slot = kFirstWindow; slot < next_window_ + kWindow_slots; ++slot)
    if (const std::uint64_t row = outcomes_[slot])
      visit(owners_[slot - window_offset(static_cast<std::uint8_t>(row & RowBits::kTagMask))], row);
  for (const auto& entry : aside_.entries())
    if (entry.row != 0) visit(owners_[entry.key().state], entry.row);
}

Rows::OutcomesOfStates Rows::take_outcomes() {
  OutcomesOfStates taken{std::vector<std::uint64_t>(outcome_count_),
                         std::vector<std::uint32_t>(states_.size() + 2)};
  // Counted two places further, and put one place further, they end up where they belong.
  for_each_outcome([&](StateNumber state, std::uint64_t) { ++taken.first[state + 2]; });
  std::partial_sum(taken.first.begin(), taken.first.end(), taken.first.begin());
  for_each_outcome(
      [&](StateNumber state, std::uint64_t row) { taken.rows[taken.first[state + 1]++] = row; });
  std::fill_n(outcomes_.data(), next_window_ + kWindow_slots, 0);
  aside_.clear();
  return taken;
}

// --- Targets ----------------------------------------------------------------------------------

void Rows::put(StateKey state, std::uint64_t ip, IpKind kind, std::uint64_t row) {
  targets_.put({state, ip, kind}, row);
}

}  // namespace tailtrace::pt
