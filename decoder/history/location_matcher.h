// LocationMatcher: which addresses of a process a location means.
//
// Threading: one thread at a time. The symbolizer must outlive it.
#pragma once

#include <map>
#include <unordered_map>

#include "decoder/history/location.h"

namespace tailtrace {

class LocationMatcher {
 public:
  LocationMatcher(Location location, Symbolizer& symbols)
      : location_(std::move(location)), symbols_(symbols) {}

  // The instruction there is part of the location.
  bool holds(Address address);

  // Coming there is coming to the location: where a debugger's breakpoint on it would be. That is
  // the first instruction of a function, or of the line in each function that has code of it.
  bool is_entry(Address address);

  const Location& location() const { return location_; }

 private:
  bool is_of(Address address);
  bool is_line(Address address) const;
  bool is_at_offset(Address address);
  bool find_entry(Address address);

  Location location_;
  Symbolizer& symbols_;
  std::unordered_map<Address, bool> held_;
  std::unordered_map<Address, bool> entries_;
  std::map<Address, std::optional<Address>> first_of_line_;  // by the function's begin
};

}  // namespace tailtrace
