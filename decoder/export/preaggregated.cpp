#include "decoder/export/preaggregated.h"

#include <fmt/format.h>

#include "decoder/history/location.h"

namespace tailtrace {

std::optional<std::uint64_t> PreaggregatedProfile::place_of(Symbolizer& symbols, Address address,
                                                            Epoch when) const {
  if (!ends_path(symbols.function_in(address, when).module, file_)) return std::nullopt;
  return symbols.address_in_file(address, when);
}

void PreaggregatedProfile::add(const CodeRuns& all, Symbolizer& symbols) {
  for (const auto& [run, times] : all.runs) {
    auto first = place_of(symbols, run.first, run.epoch);
    auto last = place_of(symbols, run.last, run.epoch);
    if (first && last) runs_[{*first, *last}] += times;
  }
  for (const auto& [branch, count] : all.branches) {
    auto from = place_of(symbols, branch.from, branch.epoch);
    auto to = place_of(symbols, branch.to, branch.epoch);
    if (!from || !to) continue;
    BranchCount& sum = branches_[{*from, *to}];
    sum.times += count.times;
    sum.mispredicted += count.mispredicted;
  }
}

void PreaggregatedProfile::list(const TextSink& line) const {
  for (const auto& [place, count] : branches_)
    if (!line(fmt::format("B {:x} {:x} {} {}", place.first, place.second, count.times,
                          count.mispredicted)))
      return;
  for (const auto& [place, times] : runs_)
    if (!line(fmt::format("F {:x} {:x} {}", place.first, place.second, times))) return;
}

void PreaggregatedProfile::list_for_autofdo(const TextSink& line) const {
  if (!line(std::to_string(runs_.size()))) return;
  for (const auto& [place, times] : runs_)
    if (!line(fmt::format("{:x}-{:x}:{}", place.first, place.second, times))) return;
  if (!line("0") || !line(std::to_string(branches_.size()))) return;
  for (const auto& [place, count] : branches_)
    if (!line(fmt::format("{:x}->{:x}:{}", place.first, place.second, count.times))) return;
}

}  // namespace tailtrace
