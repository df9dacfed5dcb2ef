// What a process that was recorded under qemu had mapped, so that its addresses get names: from the
// files that it executed, and from no others.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "decoder/bundle/bundle_about.h"
#include "plugin/engines/qemu/process_folder.h"

namespace tailtrace {

struct KeptMaps {
  // As maps_with_other_builds() has it; empty when nobody knows any more.
  std::string text;
  std::vector<BundleModule> modules;  // files that have a build id
  std::vector<Error> problems;        // files that are other ones here
};
KeptMaps kept_maps(const ProcessFolder& folder);

}  // namespace tailtrace
