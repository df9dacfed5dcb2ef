// What CallBuilder knows of unwinders and `longjmp`, which leave calls without a return.
#include "decoder/history/calls/call_builder.h"

namespace tailtrace {

// The unwinder jumps to who catches, or cleans up. Who has done that goes on with the unwinding,
// which comes back to its callers only.
void CallBuilder::begin_landing(std::uint32_t function, Address address, std::uint64_t item) {
  const std::uint32_t unwinder = from_;
  const bool resumes =
      calls_.functions_[stacks_.at(unwinder).function]->plain_name() == "_Unwind_Resume";
  const std::uint32_t inside = resumes ? stacks_.returns_to(unwinder) : unwinder;
  const std::uint32_t outside = inside != 0 ? stacks_.at(inside).caller : 0;
  const std::uint32_t lands = find_function(outside, function, address);
  suspended_.unwind(stacks_.at(unwinder).caller, lands);
  if (lands == 0) return begin_older(function, address, item);
  begin_part(function, item, lands);
}

// What calls `setjmp` may be one itself, as musl's `sigsetjmp`, which has returned by then and
// begins again: where that was called is on the stack.
void CallBuilder::note_way_back() {
  const KeptSegment& from = stacks_.at(from_);
  const bool is_inner = returns_twice_[from.function] && from.caller != 0;
  jumped_back_to_[last_.next()].push_back(is_inner ? from.caller : from_);
}

// Of a function without a name only the call of `setjmp` tells where a `longjmp` goes back to.
// What is not on this stack any more is forgotten. 0: none is known.
std::uint32_t CallBuilder::call_that_is_jumped_back_to(Address address) {
  auto place = jumped_back_to_.find(address);
  if (place == jumped_back_to_.end()) return 0;
  for (auto& calls = place->second; !calls.empty(); calls.pop_back()) {
    std::uint32_t& call = calls.back();
    while (stacks_.at(call).later != 0 && stacks_.budget().take()) call = stacks_.at(call).later;
    std::uint32_t outer = from_;
    while (outer > call && stacks_.budget().take()) outer = stacks_.at(outer).caller;
    if (outer != call) continue;
    suspended_.unwind(stacks_.at(from_).caller, call);
    return call;
  }
  return 0;
}

// The nearest call of the function from a segment outwards. Of one without a name only the tables
// for unwinding tell. 0: none is known.
std::uint32_t CallBuilder::find_function(std::uint32_t segment, std::uint32_t function,
                                         Address address) {
  if (!calls_.functions_[function]->entry.is_null())
    return stacks_.find_function(segment, function);
  const std::optional<Address> begin = symbols_.fde_begin(address, when_);
  for (; begin && segment != 0 && stacks_.budget().take(); segment = stacks_.at(segment).caller) {
    const Address behind = suspended_.goes_on(segment);
    const bool is_open = !behind.is_null() && stacks_.at(segment).later == 0;
    if (is_open && symbols_.fde_begin({behind.value - 1}, when_) == begin) return segment;
  }
  return 0;
}

// An unwinder or a `longjmp` comes back to a call, and nothing of that has a name: where GDB begins
// no segment, all of the last one is of that call. Who calls what jumps, and nothing in between,
// has cleaned up and goes on with the unwinding, unless nobody further out is of that function.
void CallBuilder::land_inside(Address address) {
  if (!left_stack()) return;
  KeptSegment& from = stacks_.at(from_);
  const std::uint32_t inside = stacks_.returns_to(from_);
  const std::uint32_t outside = inside != 0 ? stacks_.at(inside).caller : 0;
  std::uint32_t lands = find_function(outside, from.function, address);
  if (lands == 0) lands = find_function(inside, from.function, address);
  if (lands == 0) return;
  suspended_.unwind(from.caller, lands);
  if (from.earlier != 0) stacks_.at(from.earlier).later = 0;
  make_part(from_, lands);
}

}  // namespace tailtrace
