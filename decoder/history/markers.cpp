#include "decoder/history/markers.h"

#include <algorithm>

#include "decoder/code/code_reader.h"

namespace tailtrace {
namespace {

// The records are gone through from the newest to the oldest, and so is what is made of them.
class Marking {
 public:
  Marking(const ThreadSnapshot& snapshot, std::span<const MarkedMoment> moments)
      : snapshot_(snapshot), moments_(moments), left_(moments.size()), code_(*snapshot.code) {
    marked_.places.resize(moments.size());
    made_.reserve(snapshot.records.size() + moments.size());
  }

  MarkedSnapshot run() {
    Epoch epoch = snapshot_.first_epoch;
    for (const BranchRecord& record : snapshot_.records)
      if (record.kind == RecordKind::kCodeChange) ++epoch.value;
    for (std::size_t i = snapshot_.records.size(); i-- > 0;) {
      const BranchRecord& record = snapshot_.records[i];
      if (record.kind == RecordKind::kCodeChange) --epoch.value;
      code_.set_epoch(epoch);
      put(record, i == 0 ? nullptr : &snapshot_.records[i - 1]);
      if (record.time != 0) newest_time_ = record.time;
      if (record.kind == RecordKind::kGap || record.kind == RecordKind::kOverflow) pass_gap();
    }
    return finish();
  }

 private:
  struct Place {
    std::size_t moment;
    std::uint32_t insns;  // executed in the run before it
  };

  // What the gap hid can be told only by its time: hits after it that were not matched.
  void pass_gap() {
    while (left_ > 0 && (moments_[left_ - 1].time == 0 || newest_time_ == 0 ||
                         moments_[left_ - 1].time > newest_time_))
      --left_;
  }

  bool may_lie_in(const BranchRecord& record, const BranchRecord* before) const {
    if (left_ == 0 || before == nullptr || before->to.is_null() || record.insns == 0) return false;
    const MarkedMoment& moment = moments_[left_ - 1];
    if (moment.time != 0 && before->time != 0 && moment.time < before->time) return false;
    if (!moment.executes && moment.next == record.to && !record.is_async()) return true;
    return moment.next >= before->to && (record.from.is_null() || moment.next <= record.from);
  }

  // Newest first. Addresses grow along a run, so that one that lies before is found further back.
  std::vector<Place> places_in(const BranchRecord& record, const BranchRecord* before) {
    std::vector<Place> places;
    if (!may_lie_in(record, before)) return places;
    std::vector<Address> run;
    for (Address at = before->to; run.size() < record.insns;) {
      auto insn = code_.at(at);
      if (!insn) return places;
      run.push_back(at);
      at = insn->next();
    }
    run.push_back(record.is_async() ? record.from : record.to);
    for (std::size_t i = run.size(); i-- > 0 && left_ > 0;) {
      const MarkedMoment& moment = moments_[left_ - 1];
      const bool fits = moment.executes ? i + 1 < run.size() : i > 0;
      if (fits && run[i] == moment.next && may_lie_in(record, before))
        places.push_back({--left_, static_cast<std::uint32_t>(i)});
    }
    return places;
  }

  void put(const BranchRecord& record, const BranchRecord* before) {
    std::vector<Place> places = places_in(record, before);
    std::uint32_t end = record.insns;
    auto place = places.begin();
    // An access by the branch itself: behind it.
    for (; place != places.end() && !record.is_async() && place->insns == record.insns; ++place)
      mark(*place, 0, record.to, record);
    made_.push_back(record);
    std::size_t ends_run = made_.size() - 1;
    for (; place != places.end(); ++place) {
      made_[ends_run].insns = end - place->insns;
      end = place->insns;
      mark(*place, end, moments_[place->moment].next, record);
      ends_run = made_.size() - 1;
    }
  }

  void mark(const Place& place, std::uint32_t insns, Address at, const BranchRecord& record) {
    const MarkedMoment& moment = moments_[place.moment];
    BranchRecord marker{at, at, moment.time, insns, RecordKind::kMarker, kFlagAsync, moment.slot};
    if (moment.time != 0)
      marker.flags |= kFlagTimeExact;
    else
      marker.time = record.time;
    marker.flags |= kernel_flag(at) | (record.flags & kFlagInTransaction);
    marked_.places[place.moment] = Position{made_.size()};  // from the newest, for now
    made_.push_back(marker);
  }

  MarkedSnapshot finish() {
    std::reverse(made_.begin(), made_.end());
    for (auto& place : marked_.places)
      if (place) place->value = snapshot_.first.value + made_.size() - 1 - place->value;
    marked_.snapshot = snapshot_;
    marked_.snapshot.records = std::move(made_);
    return std::move(marked_);
  }

  const ThreadSnapshot& snapshot_;
  std::span<const MarkedMoment> moments_;
  std::size_t left_;  // moments that are not matched yet: the oldest so many
  CodeReader code_;
  std::uint64_t newest_time_ = 0;  // of the oldest record seen that has one
  std::vector<BranchRecord> made_;
  MarkedSnapshot marked_;
};

}  // namespace

MarkedSnapshot put_markers(const ThreadSnapshot& snapshot, std::span<const MarkedMoment> moments) {
  return Marking(snapshot, moments).run();
}

}  // namespace tailtrace
