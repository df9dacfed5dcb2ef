#include "plugin/cli/awaited_places.h"

#include <algorithm>

#include "decoder/symbols/deleted_files.h"
#include "plugin/recorder/entries.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t kHookRing_bytes = 1u << 12;

}  // namespace

Result<void> AwaitedPlaces::find_hook(const std::string& place) {
  auto maps = process_maps(pid_);
  if (!maps) return fail(std::move(maps.error()));
  hook_.name = "the dynamic linker";
  hook_.address = loader_hook(mappings_of(pid_, *maps));
  hook_.stop = true;
  if (!hook_.address.is_null()) return {};
  return fail(ErrorCode::kUsage, "cannot watch " + place,
              "no file of that name is mapped, and the program loads none",
              "a place of the program itself");
}

Result<bool> AwaitedPlaces::awaits(const std::string& place, const WatchedProgram& program) {
  auto module = awaited_module(place, program);
  if (!module) return fail(std::move(module.error()));
  if (module->empty()) return false;
  if (!any())
    if (auto ok = find_hook(place); !ok) return fail(std::move(ok.error()));
  awaited_.push_back({place, *module});
  return true;
}

Result<void> AwaitedPlaces::begins(ThreadId thread) {
  if (!any()) return {};
  perf::MarkerSet hook(perf::real_kernel(), thread.tid, kHookRing_bytes);
  if (auto ok = hook.add(hook_); !ok) return ok;
  threads_.insert_or_assign(thread, std::move(hook));
  return {};
}

// Nothing else to wait for, the register is there for what came.
Result<std::vector<std::string>> AwaitedPlaces::come() {
  const WatchedProgram now = loaded();
  std::vector<std::string> places;
  for (const Awaited& one : awaited_) {
    auto module = awaited_module(one.place, now);
    if (!module) return fail(std::move(module.error()));
    if (module->empty()) places.push_back(one.place);
  }
  std::erase_if(awaited_,
                [&](const Awaited& one) { return std::ranges::count(places, one.place) != 0; });
  if (!any()) threads_.clear();
  return places;
}

std::vector<Error> AwaitedPlaces::missing() const {
  std::vector<Error> errors;
  for (const Awaited& one : awaited_) errors.push_back(never_loaded(one.place));
  return errors;
}

}  // namespace tailtrace
