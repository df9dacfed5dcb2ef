// What ProcessSymbols knows of libraries that are gone.
#include <algorithm>

#include "decoder/symbols/process_symbols.h"

namespace tailtrace {

void ProcessSymbols::know_history(const ThreadFrame& frame) {
  code_ = frame.code;
  for (FormerModule& module : parse_former_maps(frame.former_maps)) {
    const Mapping& first = module.mappings.front();
    auto& functions =
        former_functions_[{first.path, first.begin - Address{first.file_offset_bytes}}];
    for (const Mapping& mapping : module.mappings) {
      Address begin = mapping.begin, end = mapping.end;
      auto other = former_ranges_.lower_bound(begin);
      while (other != former_ranges_.end() && other->second <= end) {
        begin = std::min(begin, other->second);
        end = std::max(end, other->first);
        other = former_ranges_.erase(other);
      }
      former_ranges_[end] = begin;
    }
    former_.push_back({std::move(module), &functions});
  }
}

// Nothing that is known of where nothing is mapped holds for where something was.
void ProcessSymbols::clip_to_former(Address address, Place& place) const {
  auto behind = former_ranges_.upper_bound(address);
  if (behind != former_ranges_.end() && behind->second > address)
    place.end = std::min(place.end, behind->second);
  if (behind != former_ranges_.begin())
    place.begin = std::max(place.begin, std::prev(behind)->first);
}

// The library that was there when this code was, if it is none that is there now. Each was there
// until other code came, and before that another one may have been. What came last may be unknown.
const ProcessSymbols::Former* ProcessSymbols::former_in(Address address, Epoch when) const {
  auto range = former_ranges_.upper_bound(address);
  if (range == former_ranges_.end() || range->second > address) return nullptr;
  const Former* first_over = nullptr;  // of those that were there then
  const Former* last = nullptr;
  for (const Former& former : former_) {
    if (former.module.find(address) == nullptr) continue;
    if (last == nullptr) last = &former;
    const std::optional<Epoch> until = former.module.until;
    if (!until || *until <= when) continue;
    if (first_over == nullptr || *until < *first_over->module.until) first_over = &former;
  }
  if (first_over != nullptr || last == nullptr) return first_over;
  auto now = std::ranges::upper_bound(mappings_, address, {}, &Mapping::begin);
  const bool is_mapped = now != mappings_.begin() && address < std::prev(now)->end;
  const bool is_other_code = last->module.until || (is_mapped && std::prev(now)->executable);
  return is_other_code ? nullptr : last;
}

std::vector<Mapping> ProcessSymbols::mappings_in(Epoch when) const {
  std::vector<const FormerModule*> before, left;  // of what is mapped now
  for (const Former& former : former_) {
    const FormerModule& module = former.module;
    if (!module.until) left.push_back(&module);
    if (module.until && *module.until > when) before.push_back(&module);
  }
  std::ranges::stable_sort(before, {}, [](const FormerModule* module) { return *module->until; });
  std::map<Address, Mapping> there;  // by end
  auto add = [&there](const Mapping& mapping) {
    auto next = there.upper_bound(mapping.begin);
    if (next == there.end() || next->second.begin >= mapping.end) there[mapping.end] = mapping;
  };
  for (const FormerModule* module : before) std::ranges::for_each(module->mappings, add);
  std::ranges::for_each(mappings_, add);
  for (const FormerModule* module : left) std::ranges::for_each(module->mappings, add);
  std::vector<Mapping> mappings;
  for (auto& [end, mapping] : there) mappings.push_back(std::move(mapping));
  return mappings;
}

ProcessSymbols::Place ProcessSymbols::place_in(Address address, Epoch when) {
  const Former* former = former_in(address, when);
  if (former == nullptr) return place_of(address);
  Place place;
  take_module(*former->module.find(address), former->module.mappings, place);
  return place;
}

const Function& ProcessSymbols::former_function(const Former& former, Address address) {
  auto after = former.functions->upper_bound(address);
  if (after != former.functions->begin() && address < std::prev(after)->second.end)
    return std::prev(after)->second;
  Place place;
  take_module(*former.module.find(address), former.module.mappings, place);
  Function function =
      place.module != nullptr ? function_in_module(place, address) : function_of(place, {});
  return former.functions->insert_or_assign(function.begin, std::move(function)).first->second;
}

}  // namespace tailtrace
