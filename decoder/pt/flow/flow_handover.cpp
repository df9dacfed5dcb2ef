// How the fast path is handed over to, and what is made of where it stopped.
#include <algorithm>

#include "decoder/pt/fast/fast_flow.h"
#include "decoder/pt/flow/flow.h"

namespace tailtrace::pt {

// Lets the fast path go on from here as far as it can.
bool FlowWalker::try_fast() {
  if (!enabled_ || held_ || in_transaction_ || !knows(mode_)) return false;
  if (!items_.is_between_packets() || fast_->rests()) return false;
  FastFlow::Place place;
  const std::size_t begin = place.offset = items_.place();
  std::size_t end = end_;
  if (next_change_ < config_.code_changes.size()) {
    // The item that brings a change is for the complete decoder.
    const CodeChange& change = config_.code_changes[next_change_];
    bool in_time = items_.clock().ticks() >= change.time;
    if (change.offset_bytes <= place.offset && in_time) return false;
    if (change.offset_bytes > place.offset) end = std::min<std::size_t>(end, change.offset_bytes);
    if (!in_time) place.stop_time = change.time;
  }
  place.outcomes = outcomes_;
  place.outcome_count = outcome_count_;
  place.last_ip = items_.last_ip();
  place.fresh_time = items_.has_fresh_time();
  place.time = {time_, time_exact_};
  place.ip = ip_.value;
  place.mode = mode_;
  flush();
  if (!fast_->run(trace_, end, place, items_.clock(), *paths_)) return false;
  items_.resume(place.offset, place.last_ip, place.fresh_time);
  outcomes_ = place.outcomes;
  outcome_count_ = place.outcome_count;
  if (place.offset > begin) {
    consumed_before_fast_ = consumed_offset_;
    consumed_offset_ = fast_end_ = place.offset;
    fast_begin_ = begin;
  }
  // Behind the branch that the last packet told of, or where tracing went on.
  if (place.enabled || place.insns != 0) anchor();
  time_ = place.time.ticks;
  time_exact_ = place.time.exact;
  straight_on({place.ip});
  fast_stuck_ = true;
  return true;
}

// The fast path reads timing packets behind the last packet that it uses. After an error they are
// searched for a PSB: a CYC that was cut off takes its first byte for its own last one.
void FlowWalker::forget_reading_on() {
  if (consumed_offset_ != fast_end_) return;
  PacketReader packets(trace_, config_.errata.skz84);
  packets.seek(fast_begin_);
  std::size_t last = consumed_before_fast_;
  for (Packet packet; packets.offset() < fast_end_;) {
    std::size_t offset = packets.offset();
    if (packets.next(packet) != ReadStatus::kOk) break;
    bool used = packet.kind == PacketKind::kTnt || packet.kind == PacketKind::kTip ||
                packet.kind == PacketKind::kTipPge;
    if (used) last = offset + 1;
  }
  consumed_offset_ = last;
}

}  // namespace tailtrace::pt
