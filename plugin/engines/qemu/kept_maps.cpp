#include "plugin/engines/qemu/kept_maps.h"

#include <algorithm>

#include "decoder/base/file.h"
#include "decoder/bundle/bundle_format.h"
#include "decoder/symbols/deleted_files.h"

namespace tailtrace {
namespace {

// A recording of an earlier version has none.
std::vector<BundleModule> modules_of(const ProcessFolder& folder) {
  std::vector<BundleModule> modules;
  Result<Bytes> file = read_file(folder.path() + "/" + kBuildIdsName, kMaxMaps_bytes);
  if (!file) return modules;
  std::string_view text = as_text(*file);
  while (!text.empty() && modules.size() < kBundleMaxModules) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t space = line.find(' ');
    if (space == 0 || space == line.npos) continue;
    modules.push_back(
        {std::string(line.substr(space + 1)), std::string(line.substr(0, space)), {}});
  }
  return modules;
}

// What is kept is as old as the last library.
std::string maps_of(const ProcessFolder& folder) {
  Result<Bytes> kept = read_file(folder.path() + "/" + kMapsName, kMaxMaps_bytes);
  if (kept) return mark_deleted(folder.pid(), std::string(as_text(*kept)));
  return folder.is_alive() ? process_maps(folder.pid()).value_or("") : std::string();
}

// Files are the ones that are mapped, wherever their paths lead by now.
void name_as_in(const std::string& maps, std::vector<BundleModule>& modules) {
  for (BundleModule& module : modules) {
    const std::string deleted = module.path + std::string(kDeletedWord);
    if (maps.find(deleted + "\n") != maps.npos) module.path = deleted;
  }
}

}  // namespace

KeptMaps kept_maps(const ProcessFolder& folder) {
  BundleAbout about;
  about.modules = modules_of(folder);
  const std::string text = maps_of(folder);
  name_as_in(text, about.modules);
  compare_build_ids(about);
  KeptMaps maps;
  maps.text = maps_with_other_builds(text, about.modules);
  maps.problems = other_modules(about);
  maps.modules = std::move(about.modules);
  return maps;
}

}  // namespace tailtrace
