// Names of functions, as people write them to a debugger.
//
// Threading: pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "decoder/history/symbolizer.h"

namespace tailtrace {

// 1: a bracket of a name that opens; -1: one that closes; 0: another character.
inline int bracket(char c) {
  if (c == '<' || c == '(' || c == '{' || c == '[') return 1;
  return c == '>' || c == ')' || c == '}' || c == ']' ? -1 : 0;
}

// A function's name for people without what it takes, and what it returns behind that.
std::string_view without_parameters(std::string_view name);

// What stands between the "::" of a name without parameters: its scopes, and last its own name. An
// operator is the last part: of "A::operator std::string" the type is part of it. So is what Rust
// has for arguments of templates: "f::<u8>" is one part.
std::vector<std::string_view> name_parts(std::string_view name);

// A part without arguments of templates, and what compilers add: of "f<int>" and "f[abi:cxx11]" it
// is "f", of "f::<int>" as well, of "operator<< <char>" it is "operator<<".
std::string_view plain_part(std::string_view part);

// Whether a function has that name: for people with or without what it takes, or to the linker.
bool has_name(const Function& function, std::string_view name);

// Whether a debugger's breakpoint on the name is on the function, too: a name for people may lack
// scopes at its begin, and its parts may be plain. A method of Rust's is also called by its type:
// "<a::Queue<u8> as Iterator>::next" by "Queue::next".
bool is_called(const Function& function, std::string_view name);

}  // namespace tailtrace
