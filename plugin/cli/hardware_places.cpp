#include "plugin/cli/hardware_places.h"

#include <algorithm>

namespace tailtrace {
namespace {

Result<Address> resolve_trigger(const std::string& place, const WatchedProgram& program) {
  auto spec = resolve_watch(place, program, false);
  if (!spec) return fail(std::move(spec.error()));
  if (spec->on == perf::BreakOn::kExecute) return spec->address;
  return fail(ErrorCode::kUsage, "cannot go on or pause at " + place, "it is a variable",
              "a function or *ADDRESS");
}

}  // namespace

HardwarePlaces::HardwarePlaces(const HardwareRecording& recording, std::int32_t pid)
    : reads_(recording.reads), awaited_(pid) {
  for (const std::string& place : recording.filters) asked_.push_back({Use::kFilter, place});
  for (const std::string& place : recording.watches) asked_.push_back({Use::kWatch, place});
  if (!recording.resume_at.empty()) asked_.push_back({Use::kResume, recording.resume_at});
  if (!recording.pause_at.empty()) asked_.push_back({Use::kPause, recording.pause_at});
}

Result<void> HardwarePlaces::put(const Asked& asked, const WatchedProgram& program,
                                 perf::PerfConfig& config) const {
  if (asked.use == Use::kFilter) {
    auto filter = resolve_filter(asked.place, program);
    if (!filter) return fail(std::move(filter.error()));
    config.filters.push_back(std::move(*filter));
  } else if (asked.use == Use::kWatch) {
    auto spec = resolve_watch(asked.place, program, reads_);
    if (!spec) return fail(std::move(spec.error()));
    config.markers.push_back(std::move(*spec));
  } else {
    auto address = resolve_trigger(asked.place, program);
    if (!address) return fail(std::move(address.error()));
    (asked.use == Use::kResume ? config.resume_at : config.pause_at) = *address;
  }
  return {};
}

// What comes later has an empty place for as long, so that nothing is recorded without it.
Result<void> HardwarePlaces::put_into(perf::PerfConfig& config, const WatchedProgram& program) {
  for (const Asked& asked : asked_) {
    auto awaits = awaited_.awaits(asked.place, program);
    if (!awaits) return fail(std::move(awaits.error()));
    if (!*awaits) {
      if (auto ok = put(asked, program, config); !ok) return ok;
    } else if (asked.use == Use::kFilter) {
      config.filters.emplace_back();
    } else if (asked.use == Use::kResume) {
      config.resume_at = Address{};
    }
  }
  return {};
}

Result<void> HardwarePlaces::loads(perf::PerfConfig& config) {
  auto come = awaited_.come();
  if (!come) return fail(std::move(come.error()));
  Result<void> done;
  for (const Asked& asked : asked_)
    if (std::ranges::count(*come, asked.place) != 0)
      if (auto ok = put(asked, awaited_.loaded(), config); !ok && done) done = std::move(ok);
  return done;
}

}  // namespace tailtrace
