#include "plugin/engines/perf/marker_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tailtrace::perf {

Result<void> MarkerSet::open(Place& place) {
  auto marker = Marker::open(*kernel_, tid_, place.spec, ring_bytes_);
  if (!marker) return fail(std::move(marker.error()));
  place.marker = std::move(*marker);
  return {};
}

bool MarkerSet::none_is_free() const {
  auto free = free_breakpoint_slots(*kernel_, tid_);
  return free && *free == 0;
}

Result<void> MarkerSet::add(const BreakpointSpec& spec) {
  Place place{spec, {}, {}};
  Result<void> opened = open(place);
  while (!opened && spec.pinned && none_is_free() && give_way()) opened = open(place);
  if (!opened && (spec.pinned || !none_is_free())) return opened;
  if (!opened) {
    remarks_.push_back(std::move(opened.error()));
    remarks_.back().now = "it waits until one is free";
  }
  places_.push_back(std::move(place));
  return {};
}

bool MarkerSet::give_way() {
  auto gives = std::find_if(places_.rbegin(), places_.rend(),
                            [](const Place& place) { return place.marker && !place.spec.pinned; });
  if (gives == places_.rend()) return false;
  if (auto log = read(static_cast<std::size_t>(places_.rend() - gives) - 1, ~0ull))
    gives->before = std::move(*log);
  gives->marker.reset();
  remarks_.push_back({ErrorCode::kSystem,
                      fmt::format("{} of thread {} gave way", gives->spec.name, tid_),
                      "somebody else needs its debug register more", "",
                      "its hits are logged again when one is free"});
  return true;
}

void MarkerSet::retry() {
  for (Place& place : places_)
    if (!place.marker && !open(place)) return;
}

Result<MarkerLog> MarkerSet::read(std::size_t number, std::uint64_t limit) {
  Place& place = places_[number];
  MarkerLog all = place.before;
  if (place.marker) {
    auto log = place.marker->read(limit);
    if (!log) return log;
    for (MarkerHit& hit : log->hits) {
      hit.number += place.before.count;
      all.hits.push_back(std::move(hit));
    }
    all.count += log->count;
  }
  if (all.hits.size() > limit)
    all.hits.erase(all.hits.begin(), all.hits.end() - static_cast<std::ptrdiff_t>(limit));
  return all;
}

Result<std::map<std::size_t, MarkerLog>> MarkerSet::read_all(std::uint64_t limit) {
  std::map<std::size_t, MarkerLog> logs;
  for (std::size_t number = 0; number < places_.size(); ++number) {
    auto log = read(number, limit);
    if (!log) return fail(std::move(log.error()));
    logs.emplace(number, std::move(*log));
  }
  return logs;
}

std::optional<TimeConversion> MarkerSet::time_conversion() const {
  for (const Place& place : places_)
    if (place.marker) return place.marker->time_conversion();
  return std::nullopt;
}

std::vector<Error> MarkerSet::take_remarks() { return std::exchange(remarks_, {}); }

}  // namespace tailtrace::perf
