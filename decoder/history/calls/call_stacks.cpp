#include "decoder/history/calls/call_stacks.h"

namespace tailtrace {

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

std::uint32_t CallStacks::find_function(std::uint32_t segment, std::uint32_t function) {
  while (segment != 0 && budget_.take() && switched(segment, function))
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
