// Why the kernel refused a perf event, found out by looking, with the fix and what works instead.
// One place for all of them, so that every engine and `tailtrace doctor` say the same; what goes
// wrong without a refusal is in known_trouble.h.
//
// Threading: values; looking reads /proc and /sys.
#pragma once

#include <string>
#include <vector>

#include "decoder/base/result.h"
#include "decoder/base/types.h"
#include "plugin/engines/machine.h"
#include "plugin/engines/perf/kernel.h"

namespace tailtrace::perf {

// What an event is for; it decides what a refusal means.
enum class Purpose { kPt, kBtsArea, kBtsSamples, kLbr, kBreakpoint, kSideband };

// "Intel PT", "branch samples", ...
std::string_view purpose_name(Purpose purpose);

enum class Step { kOpen, kMapRing, kMapAux, kFilter, kControl };

struct Refusal {
  Purpose purpose = Purpose::kPt;
  Step step = Step::kOpen;
  int error_number = 0;
  Target target;
  std::uint64_t asked_bytes = 0;          // of mappings
  const perf_event_attr* attr = nullptr;  // of kOpen: EINVAL is traced to one attribute
};

// A process that holds perf events open.
struct Holder {
  int pid = 0;
  std::string name;
  std::size_t events = 0;
};

// Looks through /proc; processes of others are seen only with the rights for it. At most `limit`,
// those that hold the most first.
std::vector<Holder> holders_of_events(const std::string& root, std::size_t limit);

// The attribute without which the kernel would have taken the event: tried one after the other.
// Empty when it is none of them.
std::string attribute_to_blame(Kernel& kernel, const perf_event_attr& attr, Target target,
                               int error_number);

Error explain(Kernel& kernel, const Refusal& refusal);

}  // namespace tailtrace::perf
