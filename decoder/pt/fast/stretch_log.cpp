#include "decoder/pt/fast/stretch_log.h"

namespace tailtrace::pt {

// Of the oldest stretches only: what is newest is asked for.
void StretchLog::forget_half() {
  const std::size_t dropped = stretches_.size() / 2;
  if (dropped == 0) return;
  const std::size_t first = stretches_[dropped].first;
  for (std::size_t i = 0; i < first; ++i)
    if (auto* part = std::get_if<Part>(&entries_[i])) records_ -= part->records.size();
  entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(first));
  stretches_.erase(stretches_.begin(), stretches_.begin() + static_cast<std::ptrdiff_t>(dropped));
  for (Stretch& stretch : stretches_) stretch.first -= first;
  forgot_ = true;
}

void StretchLog::instructions(std::span<const Instruction> run, const RunState& state) {
  if (in_part_) {
    sink_.instructions({&last_, 1}, state_);
  } else {
    in_part_ = true;
    begin_ = run.front().address;
    sink_ = RecordSink();
    sink_.take_back(begin_, 0, state);
  }
  if (run.size() > 1) sink_.instructions(run.first(run.size() - 1), state);
  last_ = run.back();
  state_ = state;
}

void StretchLog::close_part() {
  if (!std::exchange(in_part_, false)) return;
  const std::uint32_t open = sink_.hand_over(last_.address);
  Part part{begin_, sink_.drain(), open, state_, last_};
  records_ += part.records.size();
  add(std::move(part));
}

void StretchLog::add(Entry entry) {
  // What comes before tracing was seen to go on belongs to a stretch that began earlier.
  if (stretches_.empty()) stretches_.push_back({0, entries_.size(), 0});
  entries_.push_back(std::move(entry));
  ++stretches_.back().count;
}

void StretchLog::event(const Event& event) {
  close_part();
  if (event.kind == EventKind::kEnabled) {
    if (records_ > most_records_) forget_half();
    stretches_.push_back({event.has(kEventHasTime) ? event.time : 0, entries_.size(), 0});
  }
  add(event);
}

void StretchLog::gap(const Gap& gap) {
  close_part();
  add(gap);
}

void StretchLog::play(const Stretch& stretch, Tail& into) const {
  for (std::size_t i = stretch.first; i < stretch.first + stretch.count; ++i) {
    const Entry& entry = entries_[i];
    if (auto* part = std::get_if<Part>(&entry)) {
      into.branches(
          {part->begin, part->last.address, part->records, part->open_insns, part->state});
      into.instructions({&part->last, 1}, part->state);
    } else if (auto* event = std::get_if<Event>(&entry)) {
      into.event(*event);
    } else {
      into.gap(std::get<Gap>(entry));
    }
  }
}

}  // namespace tailtrace::pt
