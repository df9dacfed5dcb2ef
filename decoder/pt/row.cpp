#include "decoder/pt/row.h"

#include <algorithm>

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
      symbols_(kMaxOutcomes),
      aside_(kLeastAside),
      targets_(kLeastTargets),
      pushes_(EffectBook::kMaxEffects, PageSize::kSmall),
      counts_(EffectBook::kMaxEffects, PageSize::kSmall),
      book_(std::make_shared<EffectBook>()) {}

bool Rows::is_full() const {
  // What one packet may add is left free.
  constexpr std::size_t kMargin = EffectBook::kPartEffects;
  return states_.size() + kMargin >= kMaxStates || symbols_.size() + kMargin >= kMaxOutcomes ||
         targets_.size() + kMargin >= kMaxTargets ||
         next_window_ + kNewWindow * kMargin + kWindow_slots >= kMaxSlots ||
         book_->size() + kMargin >= EffectBook::kMaxEffects ||
         book_->size_bytes() >= EffectBook::kMax_bytes;
}

void Rows::drop() { *this = Rows(); }

// --- States ----------------------------------------------------------------------------------

StateKey Rows::key_of(std::uint64_t ip, CodeMode mode) {
  AddressTable& numbers = numbers_[static_cast<std::size_t>(mode)];
  StateNumber number = numbers.find(ip);
  if (number != AddressTable::kNone) return keys_[number];
  numbers.put(ip, static_cast<StateNumber>(states_.size()));
  return add_state({ip, mode});
}

StateKey Rows::add_state(const State& state) {
  states_.push_back(state);
  keys_.push_back(static_cast<StateKey>(next_window_));
  owners_[next_window_] = static_cast<StateNumber>(states_.size() - 1);
  next_window_ += kNewWindow;
  return keys_.back();
}

std::uint32_t Rows::add_effect(EffectBook::Part& part, const Effect& effect,
                               std::span<const BranchRecord> records, std::uint64_t counts) {
  std::uint32_t number = book_->add(part, effect, records);
  counts_[number] = counts;
  return number;
}

std::uint64_t Rows::count(std::span<const std::uint32_t> words) const {
  std::uint64_t sum = 0;
  for (std::uint32_t word : words) sum += counts_[word & kPathEffect];
  return sum;
}

// --- Outcomes: a row lies in the window of its state -------------------------------------------

std::uint64_t Rows::find(StateKey state, std::uint8_t bits) const {
  const std::uint64_t row = load_row(outcomes_[slot_of(state, bits)]);
  if ((row & RowBits::kTagMask) == bits || row == 0) return row;
  return aside_.find({state, bits});
}

void Rows::put(StateKey state, std::uint8_t bits, std::uint64_t row) {
  StateKey next = RowBits::next(row);
  symbols_.push_back({owners_[state], next == 0 ? 0 : owners_[next], bits, row});
  place(symbols_.size() - 1);
}

void Rows::place(std::size_t index) {
  const Symbol& symbol = symbols_[index];
  StateKey state = keys_[symbol.state];
  std::uint64_t& slot = outcomes_[slot_of(state, symbol.bits)];
  if (slot == 0)
    publish_row(slot, symbol.row | symbol.bits);
  else
    aside_.put({state, symbol.bits}, symbol.row);
}

void Rows::make_room(std::span<const std::span<StateKey>> kept) {
  if (targets_.is_half_full()) targets_.grow();
  if (aside_.is_half_full()) aside_.grow();
  take_large_pages();
  open_windows(kept);
}

// Large pages pay when much of them is used: clearing one takes as long as filling in hundreds of
// rows.
void Rows::take_large_pages() {
  if (has_large_pages_ || book_->size() < kManyEffects) return;
  has_large_pages_ = true;
  outcomes_ = LargeArray<std::uint64_t>(kMaxSlots);
  pushes_ = with_large_pages(pushes_, book_->size());
  counts_ = with_large_pages(counts_, book_->size());
}

void Rows::open_windows(std::span<const std::span<StateKey>> kept) {
  // Keys become numbers, from 1 on, and keys again when the windows are known.
  auto number = [this](StateKey& key) { key = key == 0 ? 0 : owners_[key] + 1; };
  auto name = [this](StateKey& key) { key = key == 0 ? 0 : keys_[key - 1]; };
  std::span<Pushes> pushed(pushes_.data(), book_->size());
  std::vector<MovingTarget> targets = take_targets();
  for (std::span<StateKey> keys : kept) std::ranges::for_each(keys, number);
  for (Pushes& pushes : pushed) std::ranges::for_each(pushes.keys, number);

  lay_out();

  for (std::span<StateKey> keys : kept) std::ranges::for_each(keys, name);
  for (Pushes& pushes : pushed) std::ranges::for_each(pushes.keys, name);
  for (const MovingTarget& target : targets) {
    StateKey from = target.kind == IpKind::kTarget ? target.state : keys_[target.state];
    put(from, target.ip, target.kind, renamed(target.row, target.next));
  }
  // So many cost about as much as this did.
  tolerated_detours_ = std::max(kFirstDetours, 4 * book_->size());
  detours_ = 0;
}

// A row with the key that its next state has now; a compressed return's has none.
std::uint64_t Rows::renamed(std::uint64_t row, StateNumber next) const {
  if (RowBits::next(row) == 0) return row;
  return (row & ~RowBits::kNextMask) | std::uint64_t{keys_[next]} << RowBits::kNextShift;
}

// Opens all windows anew, in the order in which the states were met.
void Rows::lay_out() {
  Symbol* const newer = symbols_.begin() + sorted_symbols_;
  std::ranges::stable_sort(newer, symbols_.end(), {}, &Symbol::state);
  std::ranges::inplace_merge(symbols_.begin(), newer, symbols_.end(), {}, &Symbol::state);
  sorted_symbols_ = symbols_.size();
  std::fill_n(outcomes_.data(), next_window_ + kWindow_slots, 0);
  aside_.clear();
  WindowLayout layout(kFirstWindow, kMaxSlots / 2);
  std::vector<std::uint8_t> bits;
  const Symbol* symbol = symbols_.begin();
  for (StateNumber state = 0; state < states_.size(); ++state) {
    for (bits.clear(); symbol != symbols_.end() && symbol->state == state; ++symbol)
      bits.push_back(symbol->bits);
    std::size_t window = layout.add(bits);
    keys_[state] = static_cast<StateKey>(window);
    owners_[window] = state;
  }
  next_window_ = layout.end();
  for (std::size_t i = 0; i < symbols_.size(); ++i) {
    symbols_[i].row = renamed(symbols_[i].row, symbols_[i].next);
    place(i);
    if (aside_.is_half_full()) aside_.grow();
  }
}

// --- Targets ----------------------------------------------------------------------------------

void Rows::put(StateKey state, std::uint64_t ip, IpKind kind, std::uint64_t row) {
  targets_.put({state, ip, kind}, row);
}

std::vector<Rows::MovingTarget> Rows::take_targets() {
  std::vector<MovingTarget> all;
  for (const auto& entry : targets_.entries()) {
    if (entry.row == 0) continue;
    const TargetKey key = entry.key();
    StateNumber from = key.kind == IpKind::kTarget ? key.state : owners_[key.state];
    all.push_back({from, owners_[RowBits::next(entry.row)], key.kind, key.ip,
                   entry.row & ~RowBits::kTagMask});
  }
  targets_.clear();
  return all;
}

}  // namespace tailtrace::pt
