// TriggerPlaces: where a program comes to, or accesses, what ends its recording: what is asked for
// by name, as the files that it has mapped have it. What belongs to a library that is loaded later
// (dlopen) is found then.
//
// Threading: the program's tracer.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/base/result.h"
#include "decoder/symbols/mapping.h"
#include "plugin/recorder/debug_registers.h"
#include "plugin/recorder/flight.h"

namespace tailtrace {

class TriggerPlaces {
 public:
  // REQUIRES: `triggers` outlives it.
  TriggerPlaces(const Triggers& triggers, pid_t pid) : triggers_(triggers), pid_(pid) {}

  // Looks for all of them. Errors: kUsage: there is none of that name, or it cannot be watched.
  Result<void> find(const std::vector<Mapping>& mappings);
  // The program executes another one.
  void forget();

  // Where the dynamic linker calls when it has mapped files, while any of them are waited for.
  bool is_loader(Address pc) const { return awaits_any() && pc == loader_; }
  // It has come there: whether any were found. What is wrong with a name is said.
  bool load(const std::vector<Mapping>& mappings, const std::function<void(std::string_view)>& say);

  // What has not come by now.
  std::vector<Error> missing() const;

  bool is_function(Address pc) const { return functions_.contains(pc); }
  // For debug registers, as many as there are; those in code are left out of a program that makes
  // steps, in which each instruction is seen.
  std::vector<DebugPlace> places(bool makes_steps) const;
  // There are more of them than registers.
  Error too_many(std::size_t count) const;

 private:
  bool awaits_any() const { return !awaited_.empty() || !awaited_variables_.empty(); }
  Result<bool> find_function(const std::string& name, const std::vector<Mapping>& mappings);
  Result<bool> find_variable(const WatchedName& variable);

  const Triggers& triggers_;
  pid_t pid_;
  Address loader_;
  std::map<Address, std::string> functions_;  // by their names
  std::vector<WatchedPlace> variables_;
  // Of files that are not mapped yet.
  std::vector<std::string> awaited_;
  std::vector<WatchedName> awaited_variables_;
};

}  // namespace tailtrace
