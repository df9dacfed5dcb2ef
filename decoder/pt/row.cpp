#include "decoder/pt/row.h"

#include <sys/mman.h>

namespace tailtrace::pt {
namespace {

constexpr std::size_t kLargePage_bytes = 2u << 20;

std::size_t mapped_size(std::size_t bytes) {
  return (bytes + kLargePage_bytes - 1) / kLargePage_bytes * kLargePage_bytes;
}

}  // namespace

// Untouched pages cost nothing; without the system's help they are small ones.
template <class T>
LargeArray<T>::LargeArray(std::size_t count) : count_(count) {
  std::size_t size = mapped_size(count * sizeof(T));
  void* map = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  mapped_ = map != MAP_FAILED;
  data_ = mapped_ ? static_cast<T*>(map) : new T[count]();
  if (mapped_ && count * sizeof(T) >= kLargePage_bytes) ::madvise(map, size, MADV_HUGEPAGE);
}

template <class T>
LargeArray<T>::~LargeArray() {
  if (mapped_)
    ::munmap(data_, mapped_size(count_ * sizeof(T)));
  else
    delete[] data_;
}

template class LargeArray<std::uint64_t>;
template class LargeArray<TargetRow>;
template class LargeArray<Side>;

Rows::Rows()
    : outcomes_(std::size_t{1} << kLeastBits),
      targets_(std::size_t{1} << target_bits_),
      sides_(RowBits::kMaxEffects),
      book_(std::make_shared<EffectBook>()) {}

bool Rows::full() const {
  // What one packet may add is left free.
  constexpr std::size_t kMargin = 64;
  return overfull_ || states_.size() + kMargin >= kMaxStates ||
         outcome_count_ + kMargin >= kMaxOutcomes || target_count_ + kMargin >= kMaxTargets ||
         book_->effects.size() + kMargin >= RowBits::kMaxEffects ||
         book_->records.size() >= kMaxRecords;
}

void Rows::drop() {
  states_.clear();
  for (auto& keys : keys_) keys.clear();
  outcome_bits_ = kLeastBits;
  target_bits_ = kLeastTargetBits;
  outcomes_ = LargeArray<std::uint64_t>(std::size_t{1} << outcome_bits_);
  targets_ = LargeArray<TargetRow>(std::size_t{1} << target_bits_);
  symbols_.clear();
  outcome_count_ = target_count_ = 0;
  overfull_ = false;
  book_ = std::make_shared<EffectBook>();
}

StateKey Rows::key_of(std::uint64_t ip, CodeMode mode) {
  StateKey& key = keys_[static_cast<std::size_t>(mode)][ip];
  if (key == 0) key = add_state({ip, mode});
  return key;
}

StateKey Rows::add_state(const State& state) {
  states_.push_back(state);
  return static_cast<std::uint32_t>(states_.size()) * kScramble & kKeyMask;
}

std::uint32_t Rows::add_effect(const Effect& effect, const Side& side) {
  book_->effects.push_back(effect);
  auto number = static_cast<std::uint32_t>(book_->effects.size() - 1);
  sides_[number] = side;
  return number;
}

// --- Outcomes: a row lies in the cache line of its slot ---------------------------------------

std::uint64_t Rows::find(StateKey state, std::uint8_t bits) const {
  OutcomeView view = outcomes();
  std::uint32_t h = hash(state, bits);
  std::uint64_t tag = view.tag(h, bits);
  std::size_t slot = h >> view.shift, line = slot & ~(kLineRows - 1);
  for (std::size_t i = 0; i < kLineRows; ++i) {
    std::uint64_t row = view.rows[line + ((slot + i) & (kLineRows - 1))];
    if ((row & RowBits::kTagMask) == tag) return row;
    if (row == 0) return 0;
  }
  return 0;
}

bool Rows::put_in_line(StateKey state, std::uint8_t bits, std::uint64_t row) {
  OutcomeView view = outcomes();
  std::uint32_t h = hash(state, bits);
  std::size_t slot = h >> view.shift, line = slot & ~(kLineRows - 1);
  for (std::size_t i = 0; i < kLineRows; ++i) {
    std::uint64_t& place = outcomes_[line + ((slot + i) & (kLineRows - 1))];
    if (place != 0) continue;
    place = row | view.tag(h, bits);
    return true;
  }
  return false;
}

void Rows::put(StateKey state, std::uint8_t bits, std::uint64_t row) {
  symbols_.push_back({state, bits, row});
  ++outcome_count_;
  bool crowded = outcome_count_ * 5 > outcomes_.size() * 2 && outcome_bits_ < kKeyBits;
  if (crowded || !put_in_line(state, bits, row)) grow_outcomes();
}

void Rows::grow_outcomes() {
  while (outcome_bits_ < kKeyBits) {
    ++outcome_bits_;
    outcomes_ = LargeArray<std::uint64_t>(std::size_t{1} << outcome_bits_);
    bool all = true;
    for (const Symbol& s : symbols_) all = all && put_in_line(s.state, s.bits, s.row);
    if (all) return;
  }
  overfull_ = true;  // a line is full and there is no larger table
}

// --- Targets: the next free slot --------------------------------------------------------------

std::uint64_t Rows::find(StateKey state, std::uint64_t ip, IpKind kind) const {
  std::uint64_t key = TargetRow::key_of(state, ip), tag = TargetRow::tag_of(state, kind);
  std::size_t mask = targets_.size() - 1;
  for (std::size_t at = hash(state, ip, kind) >> (kKeyBits - target_bits_);; ++at) {
    const TargetRow& row = targets_[at & mask];
    if (row.row == 0) return 0;
    if (row.key == key && (row.row & RowBits::kTagMask) == tag) return row.row;
  }
}

void Rows::put(StateKey state, std::uint64_t ip, IpKind kind, std::uint64_t row) {
  if (++target_count_ * 2 > targets_.size()) grow_targets();
  std::size_t mask = targets_.size() - 1, at = hash(state, ip, kind) >> (kKeyBits - target_bits_);
  while (targets_[at & mask].row != 0) ++at;
  targets_[at & mask] = {TargetRow::key_of(state, ip), row | TargetRow::tag_of(state, kind)};
}

void Rows::grow_targets() {
  LargeArray<TargetRow> old(std::size_t{2} << target_bits_);
  std::swap(old, targets_);
  ++target_bits_;
  std::size_t mask = targets_.size() - 1;
  for (std::size_t i = 0; i < old.size(); ++i) {
    const TargetRow& row = old[i];
    if (row.row == 0) continue;
    auto state = static_cast<StateKey>(row.key >> 48 | (row.row & 0xf) << 16);
    auto ip = static_cast<std::uint64_t>(static_cast<std::int64_t>(row.key << 16) >> 16);
    std::size_t at = hash(state, ip, TargetRow::kind_of(row.row)) >> (kKeyBits - target_bits_);
    while (targets_[at & mask].row != 0) ++at;
    targets_[at & mask] = row;
  }
}

}  // namespace tailtrace::pt
