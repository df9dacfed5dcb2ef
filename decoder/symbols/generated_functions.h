// GeneratedFunctions: names of functions that a program made while it ran, by their addresses.
//
// Whatever is added hides what was known of its addresses before. What is left of an older function
// keeps its name: that is what was executed there.
//
// Threading: immutable once filled.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/base/types.h"

namespace tailtrace {

class GeneratedFunctions {
 public:
  static constexpr std::size_t kMaxFunctions = std::size_t{1} << 22;
  static constexpr std::size_t kMaxName_bytes = 4096;
  // Of all together: a file can give one name to many functions.
  static constexpr std::size_t kMaxNames_bytes = std::size_t{256} << 20;

  // Names are cut to their limit, and have '?' for control characters. Returns false, and knows
  // nothing of it, when it has no size or name, wraps around the address space, or is one too many.
  bool add(Address begin, std::uint64_t size_bytes, std::string_view name);

  // What holds for every address of [begin, end), a stretch around the one asked for.
  struct Cover {
    const std::string* name = nullptr;  // null: no function covers it
    Address entry;
    Address begin;
    Address end{~0ull};
  };
  Cover cover(Address address) const;

  bool empty() const { return stretches_.empty(); }

 private:
  struct Stretch {
    Address end;
    Address entry;
    std::size_t name = 0;
  };
  void clear(Address begin, Address end);

  std::map<Address, Stretch> stretches_;  // by begin; apart from each other
  std::vector<std::string> names_;
  std::size_t names_bytes_ = 0;
};

}  // namespace tailtrace
