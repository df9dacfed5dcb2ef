// InlinedCopies: of which copy of a function an instruction is: the compiler puts a function into
// others, and into one of them in several places.
//
// Threading: one thread at a time.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "decoder/history/symbolizer.h"

namespace tailtrace {

class InlinedCopies {
 public:
  explicit InlinedCopies(Symbolizer& symbols) : symbols_(symbols) {}

  // A copy that an instruction is in.
  struct Copy {
    std::size_t number = 0;  // 0: the function itself; else of a place in it
    std::string name;
    SourceLine called_at;  // of a place, in the copy around it; line 0: not known
  };

  // Those that the address is in, outermost first: the function that it is of is the first.
  std::vector<Copy> at(const Function& function, Address address, Epoch when);

  // Whose the line is of those that an instruction is in, which is its own line; and whose one is
  // that merely begins there: where calls are inlined, lines of several copies do. Ask for the own
  // lines first: they tell which functions have which lines.
  std::size_t whose_own(const std::vector<Copy>& copies, const SourceLine& line);
  std::size_t whose(const std::vector<Copy>& copies, const SourceLine& line) const;

 private:
  Symbolizer& symbols_;
  std::map<const Function*, std::vector<InlinedPlace>> places_;
  std::map<std::pair<std::string_view, unsigned>, std::set<std::string>> owners_;  // of lines
};

}  // namespace tailtrace
