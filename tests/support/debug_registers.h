// Whether tests of hardware breakpoints can run here. They are skipped only where the machine is to
// blame: perf events are refused to this user altogether, or others hold all debug registers.
//
// Threading: any.
#pragma once

#include <string>

namespace tailtrace {

// Why such tests cannot run; empty when they can. Registers that this very process still holds are
// no excuse: that is a leak, and a failure of the test that runs now.
std::string no_debug_registers();

}  // namespace tailtrace
