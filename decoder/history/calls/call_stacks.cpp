#include "decoder/history/calls/call_stacks.h"

namespace tailtrace {
namespace {

constexpr std::string_view kPutApart = ".cold";

}  // namespace

bool is_put_apart(const Function& part) {
  return part.symbol_name.find(kPutApart) != part.symbol_name.npos;
}

bool are_parts_of_one(const Function& a, const Function& b) {
  if (!function_switched(a, b)) return true;
  const bool a_is_whole = a.symbol_name.size() < b.symbol_name.size();
  const std::string_view whole = a_is_whole ? a.symbol_name : b.symbol_name;
  const std::string_view part = a_is_whole ? b.symbol_name : a.symbol_name;
  if (whole.empty() || !part.starts_with(whole)) return false;
  if (!part.substr(whole.size()).starts_with(kPutApart) || a.module != b.module) return false;
  return a.debug_name.empty() || b.debug_name.empty() || a.entry == b.entry;
}

bool function_switched(const Function& from, const Function& to) {
  if (!from.symbol_name.empty() && !to.symbol_name.empty() && from.symbol_name != to.symbol_name)
    return true;
  if (!from.debug_name.empty() && !to.debug_name.empty() &&
      (from.debug_name != to.debug_name || from.source_file != to.source_file))
    return true;
  return from.known() != to.known();
}

bool CallStacks::switched(std::uint32_t segment, std::uint32_t function) {
  static const Function nothing;
  std::uint32_t of = at(segment).function;
  if (of == function) return false;
  const Function* from = functions_[of];
  const Function* to = functions_[function];
  return function_switched(from == nullptr ? nothing : *from, to == nullptr ? nothing : *to);
}

bool CallStacks::is_part_of(std::uint32_t segment, std::uint32_t function) {
  const std::uint32_t of = at(segment).function;
  if (of == function) return true;
  if (of == 0 || function == 0) return !switched(segment, function);
  return are_parts_of_one(*functions_[of], *functions_[function]);
}

std::uint32_t CallStacks::find_function(std::uint32_t segment, std::uint32_t function) {
  while (segment != 0 && budget_.take() && !is_part_of(segment, function))
    segment = at(segment).caller;
  return segment;
}

std::uint32_t CallStacks::find_call(std::uint32_t segment) {
  auto calls = [](const KeptSegment& s) {
    return !s.is_gap() &&
           (s.last == InstructionClass::kCall || s.last == InstructionClass::kIndirectCall);
  };
  while (segment != 0 && budget_.take() && !calls(at(segment))) segment = at(segment).caller;
  return segment;
}

std::uint32_t CallStacks::find_top(std::uint32_t segment) {
  while (at(segment).caller != 0 && budget_.take()) segment = at(segment).caller;
  return segment;
}

std::uint32_t CallStacks::returns_to(std::uint32_t segment) {
  while (at(segment).caller != 0 && at(segment).tail_called && budget_.take())
    segment = at(segment).caller;
  return at(segment).caller;
}

void CallStacks::set_caller(std::uint32_t segment, std::uint32_t caller, bool tail_called) {
  auto set = [&](std::uint32_t number) {
    at(number).caller = caller;
    at(number).tail_called = tail_called;
  };
  set(segment);
  for (std::uint32_t s = at(segment).earlier; s != 0 && budget_.take(); s = at(s).earlier) set(s);
  for (std::uint32_t s = at(segment).later; s != 0 && budget_.take(); s = at(s).later) set(s);
}

}  // namespace tailtrace
