#include "plugin/engines/perf/known_trouble.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace tailtrace::perf {

bool is_at_least(const std::string& release, int major, int minor) {
  std::pair<int, int> version;
  if (std::sscanf(release.c_str(), "%d.%d", &version.first, &version.second) != 2) return true;
  return version >= std::pair(major, minor);
}

std::vector<Trouble> known_trouble(const Machine& machine) {
  std::vector<Trouble> all;
  const bool has_pt = machine.pmu("intel_pt") != nullptr;
  const bool has_core = machine.pmu("cpu") != nullptr || machine.pmu("cpu_core") != nullptr;
  if (machine.pmu("cpu_atom") != nullptr)
    all.push_back(
        {"hybrid",
         "branch samples and last branch records show what performance cores did only",
         "the processor has two kinds of cores (PMUs cpu_core and cpu_atom)",
         machine.performance_cpus.empty()
             ? "--engine=pt, which all cores have"
             : fmt::format("--engine=pt, or taskset -c {} PROGRAM", machine.performance_cpus),
         {Purpose::kBtsSamples, Purpose::kLbr}});
  if (machine.isolates_page_tables && has_core && machine.cpu.has("bts"))
    all.push_back({"page tables",
                   "intel_bts is not there; branch samples are recorded instead",
                   "the kernel isolates its page tables from user code (Meltdown)",
                   "",
                   {}});
  if (has_pt && !is_at_least(machine.kernel, 6, 16))
    all.push_back({"CPU 0",
                   "a lossless recording that runs full there goes on with a hole, unasked",
                   fmt::format("Linux {} (mended in 6.16)", machine.kernel),
                   "what is lost is told as a gap all the same",
                   {}});
  if (has_pt && !is_at_least(machine.kernel, 6, 1))
    all.push_back({"one range",
                   "buffers in one piece (Broadwell) may be written beyond their end",
                   fmt::format("Linux {} (mended in 6.1)", machine.kernel),
                   "a newer kernel",
                   {}});
  return all;
}

std::vector<Error> known_trouble_with(Purpose purpose, const Machine& machine) {
  std::vector<Error> all;
  for (const Trouble& trouble : known_trouble(machine))
    if (std::find(trouble.of.begin(), trouble.of.end(), purpose) != trouble.of.end())
      all.push_back(trouble.to_error());
  return all;
}

}  // namespace tailtrace::perf
