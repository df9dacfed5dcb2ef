#include "decoder/history/queries/inlined_copies.h"

namespace tailtrace {
namespace {

// Without the copies that are called on that line, and so are around what they are not of.
std::size_t around_calls_of(const std::vector<InlinedCopies::Copy>& copies,
                            const SourceLine& line) {
  std::size_t copy = copies.size() - 1;
  while (copy > 0 && copies[copy].called_at.line == line.line &&
         copies[copy].called_at.file == line.file)
    --copy;
  return copy;
}

}  // namespace

std::vector<InlinedCopies::Copy> InlinedCopies::at(const Function& function, Address address,
                                                   Epoch when) {
  auto [places, is_new] = places_.try_emplace(&function);
  if (is_new) places->second = symbols_.inlined_into(address, when);
  std::vector<Copy> copies{{0, function.name, {}}};
  for (std::size_t i = 0; i < places->second.size(); ++i)
    if (const InlinedPlace& place = places->second[i]; place.holds(address))
      copies.push_back({i + 1, place.function.name, {}});
  if (copies.size() == 1) return copies;
  const std::vector<InlinedFunction> calls = symbols_.inlined_at(address, when);
  if (calls.size() + 1 != copies.size()) return copies;
  for (std::size_t i = 0; i < calls.size(); ++i)  // innermost first
    copies[copies.size() - 1 - i].called_at = {calls[i].call_file, calls[i].call_line};
  return copies;
}

std::size_t InlinedCopies::whose_own(const std::vector<Copy>& copies, const SourceLine& line) {
  const Copy& copy = copies[around_calls_of(copies, line)];
  owners_[{line.file, line.line}].insert(copy.name);
  return copy.number;
}

std::size_t InlinedCopies::whose(const std::vector<Copy>& copies, const SourceLine& line) const {
  if (const auto owners = owners_.find({line.file, line.line}); owners != owners_.end())
    for (auto copy = copies.rbegin(); copy != copies.rend(); ++copy)
      if (owners->second.contains(copy->name)) return copy->number;
  return copies[around_calls_of(copies, line)].number;
}

}  // namespace tailtrace
