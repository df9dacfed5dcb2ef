// LocationMatcher: which addresses of a process a location means.
//
// Threading: one thread at a time. The symbolizer must outlive it.
#pragma once

#include <unordered_map>

#include "decoder/history/location.h"

namespace tailtrace {

class LocationMatcher {
 public:
  LocationMatcher(Location location, Symbolizer& symbols)
      : location_(std::move(location)), symbols_(symbols) {}

  // The instruction that was there then is part of the location.
  bool holds(Address address, Epoch when = kNewestEpoch);

  // Coming there is coming to the location: where a debugger's breakpoint on it would be. That is
  // the first instruction of a function, of an inlined one in each of its places; of a line where
  // its first statement begins in each block of a function.
  bool is_entry(Address address, Epoch when = kNewestEpoch);

  const Location& location() const { return location_; }

  // It means functions as a whole.
  bool is_of_functions() const {
    return !location_.address && !location_.offset && location_.line == 0;
  }
  // This one. REQUIRES: is_of_functions(); the symbolizer's.
  bool is_function(const Function& function) { return is_function(function, kNewestEpoch); }

 private:
  // Where a function's code was at a time: in another epoch another one may be at the address.
  struct Place {
    const Function& function;
    Address address;
    Epoch when;
  };
  // One is known for all epochs in which the function is there.
  struct Key {
    const Function* function;
    Address address;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct HashKey {
    std::size_t operator()(const Key& key) const {
      return std::hash<Address>()(key.address) ^ std::hash<const Function*>()(key.function);
    }
  };
  using Answers = std::unordered_map<Key, bool, HashKey>;

  bool is_function(const Function& function, Epoch when);
  bool is_also_named(Address entry, Epoch when) const;
  bool begins_nameless(const Place& place);
  bool is_line(const Place& place) const;
  bool is_at_offset(const Place& place);
  bool begins_line(const Place& place);
  const std::vector<InlinedPlace>& places_in(const Place& place);

  Location location_;
  Symbolizer& symbols_;
  std::unordered_map<const Function*, bool> functions_;
  std::unordered_map<const Function*, std::vector<InlinedPlace>> places_;  // that have the name
  Answers held_;
  Answers entries_;
  std::unordered_map<const Function*, std::vector<Address>> line_entries_;
};

// One that is_of_functions(). Errors: kUsage when the text is no location of functions.
Result<LocationMatcher> functions_named(std::string_view text, Symbolizer& symbols);

}  // namespace tailtrace
