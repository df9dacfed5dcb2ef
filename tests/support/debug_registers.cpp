#include "tests/support/debug_registers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "plugin/engines/perf/breakpoints.h"
#include "plugin/engines/perf/event.h"

namespace tailtrace {

std::string no_debug_registers() {
  perf_event_attr clock = perf::plain_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
  auto allowed = perf::Event::open(perf::real_kernel(), perf::Purpose::kSideband, clock, {});
  if (!allowed) return allowed.error().to_string();
  auto free = perf::free_breakpoint_slots(perf::real_kernel(), 0);
  if (!free) {
    ADD_FAILURE() << free.error().to_string();
    return {};
  }
  if (*free > 0) return {};
  std::string holders;
  constexpr std::size_t kAll = 1000;
  for (const perf::Holder& holder : perf::holders_of_events("", kAll)) {
    // The dummy above is one.
    if (holder.pid == ::getpid() && holder.events > 1)
      ADD_FAILURE() << "this process itself holds " << holder.events - 1 << " perf events";
    holders += " " + holder.name;
  }
  return "all debug registers are taken, perf events are held by:" + holders;
}

}  // namespace tailtrace
