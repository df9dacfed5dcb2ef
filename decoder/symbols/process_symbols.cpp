#include "decoder/symbols/process_symbols.h"

#include <algorithm>

namespace tailtrace {

ProcessSymbols::ProcessSymbols(std::vector<Mapping> mappings) : mappings_(std::move(mappings)) {}

const Function& ProcessSymbols::function_at(Address address) {
  auto covers = [&](const Function& f) { return f.begin <= address && address < f.end; };
  if (last_ != nullptr && covers(*last_)) return *last_;
  auto after = functions_.upper_bound(address);
  if (after != functions_.begin() && covers(std::prev(after)->second)) {
    last_ = &std::prev(after)->second;
    return *last_;
  }
  Function function = make_function(address);
  last_ = &functions_.insert_or_assign(function.begin, std::move(function)).first->second;
  return *last_;
}

Function ProcessSymbols::make_function(Address address) {
  Place place = place_of(address);
  Function function;
  function.begin = place.begin;
  function.end = place.end;
  if (place.module != nullptr) {
    function = place.module->function_at(address.value - place.bias);
    // Stretches may begin or end beyond what is mapped, or wrap around.
    auto loaded = [&](Address at) { return Address{at.value + place.bias}; };
    Address begin = loaded(function.begin), end = loaded(function.end);
    function.begin = begin > address ? place.begin : std::max(begin, place.begin);
    function.end = end <= address ? place.end : std::min(end, place.end);
    if (function.known()) function.entry = loaded(function.entry);
  }
  if (place.mapping != nullptr) function.module = place.mapping->path;
  return function;
}

ProcessSymbols::Place ProcessSymbols::place_of(Address address) {
  Place place;
  place.end = {~0ull};
  auto after = std::upper_bound(mappings_.begin(), mappings_.end(), address,
                                [](Address a, const Mapping& m) { return a < m.begin; });
  if (after != mappings_.end()) place.end = after->begin;
  if (after == mappings_.begin()) return place;
  const Mapping& mapping = *std::prev(after);
  place.begin = mapping.end;
  if (address >= mapping.end) return place;
  place.begin = mapping.begin;
  place.end = mapping.end;
  place.mapping = &mapping;
  if (!mapping.has_file()) return place;
  ModuleSymbols* module = module_of(mapping);
  if (module == nullptr) return place;
  std::optional<std::uint64_t> bias = module->bias(mapping.begin, mapping.file_offset_bytes);
  if (!bias) return place;
  place.module = module;
  place.bias = *bias;
  return place;
}

ModuleSymbols* ProcessSymbols::module_of(const Mapping& mapping) {
  auto known = modules_.find(mapping.path);
  if (known != modules_.end()) return known->second.get();
  Result<std::unique_ptr<ModuleSymbols>> module = ModuleSymbols::open(mapping.path);
  if (!module) problems_.push_back(module.error());
  auto& kept = modules_[mapping.path];
  if (module) kept = std::move(*module);
  return kept.get();
}

std::optional<SourceLine> ProcessSymbols::line_at(Address address) {
  Place place = place_of(address);
  return place.module == nullptr ? std::nullopt : place.module->line_at(address.value - place.bias);
}

// Where the file cannot be read, as if its addresses were its offsets, which they mostly are.
std::optional<std::uint64_t> ProcessSymbols::address_in_file(Address address) {
  Place place = place_of(address);
  if (place.module != nullptr) return address.value - place.bias;
  if (place.mapping == nullptr || !place.mapping->has_file()) return std::nullopt;
  return place.mapping->file_offset_bytes + (address - place.mapping->begin);
}

const std::vector<SourceLine>* ProcessSymbols::lines_of_unit(Address address) {
  Place place = place_of(address);
  return place.module == nullptr ? nullptr
                                 : place.module->lines_of_unit(address.value - place.bias);
}

}  // namespace tailtrace
