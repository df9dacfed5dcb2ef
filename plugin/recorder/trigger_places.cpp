#include "plugin/recorder/trigger_places.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ranges>

#include "plugin/recorder/entries.h"
#include "plugin/recorder/watch_place.h"

namespace tailtrace {

Result<void> TriggerPlaces::find(const std::vector<Mapping>& mappings) {
  forget();
  for (const std::string& name : triggers_.functions) {
    auto found = find_function(name, mappings);
    if (!found) return fail(std::move(found.error()));
    if (!*found) awaited_.push_back(name);
  }
  variables_ = triggers_.places;
  for (const WatchedName& variable : triggers_.names) {
    auto found = find_variable(variable);
    if (!found) return fail(std::move(found.error()));
    if (!*found) awaited_variables_.push_back(variable);
  }
  if (!awaits_any()) return {};
  loader_ = loader_hook(mappings);
  if (!loader_.is_null()) return {};
  const std::string& first = awaited_.empty() ? awaited_variables_.front().name : awaited_.front();
  return fail(ErrorCode::kUsage, fmt::format("cannot wait for `{}`", first),
              "no file of that name is mapped, and the program loads none");
}

void TriggerPlaces::forget() {
  functions_.clear();
  variables_.clear();
  awaited_.clear();
  awaited_variables_.clear();
}

bool TriggerPlaces::load(const std::vector<Mapping>& mappings,
                         const std::function<void(std::string_view)>& say) {
  auto is_done = [&](const Result<bool>& found) {
    if (!found) say(found.error().to_string());
    return !found || *found;
  };
  const std::size_t functions = std::erase_if(
      awaited_, [&](const std::string& name) { return is_done(find_function(name, mappings)); });
  const std::size_t variables = std::erase_if(awaited_variables_, [&](const WatchedName& variable) {
    return is_done(find_variable(variable));
  });
  return functions + variables != 0;
}

std::vector<Error> TriggerPlaces::missing() const {
  std::vector<Error> errors;
  for (const std::string& function : awaited_) errors.push_back(never_loaded(function));
  for (const WatchedName& variable : awaited_variables_)
    errors.push_back(never_loaded(variable.name));
  return errors;
}

std::vector<DebugPlace> TriggerPlaces::places(bool makes_steps) const {
  std::vector<DebugPlace> places;
  if (!makes_steps) {
    for (const auto& [function, name] : functions_) places.push_back({function, true});
    if (awaits_any()) places.push_back({loader_, true});
  }
  for (const WatchedPlace& place : variables_)
    places.push_back({place.address, false, place.size_bytes, place.reads});
  return places;
}

Error TriggerPlaces::too_many(std::size_t count) const {
  return {
      ErrorCode::kUsage, "cannot wait for so many functions and places",
      fmt::format("they are {}, and the processor has {} debug registers", count, kDebugRegisters),
      functions_.empty()
          ? ""
          : fmt::format("some of: {}", fmt::join(functions_ | std::views::values, ", ")),
      ""};
}

// Whether its file is mapped.
Result<bool> TriggerPlaces::find_function(const std::string& name,
                                          const std::vector<Mapping>& mappings) {
  if (awaits_module(name, mappings)) return false;
  auto found = entries_of(name, pid_, mappings);
  if (!found) return fail(std::move(found.error()));
  functions_.merge(*found);
  return true;
}

Result<bool> TriggerPlaces::find_variable(const WatchedName& variable) {
  const auto& [name, reads] = variable;
  const WatchedProgram standing{pid_, [] { return Result<void>(); }};
  auto module = awaited_module(name, standing);
  if (!module) return fail(std::move(module.error()));
  if (!module->empty()) return false;
  auto found = resolve_watch(name, standing, reads);
  if (!found) return fail(std::move(found.error()));
  if (found->on == perf::BreakOn::kExecute)
    return fail(ErrorCode::kUsage, "cannot wait for an access to " + name, "it is code",
                fmt::format("--on-call={}, or with its size in bytes: {}:8", name, name));
  variables_.push_back({found->address, found->size_bytes, reads});
  return true;
}

}  // namespace tailtrace
