#include "plugin/recorder/signal_fate.h"

#include <signal.h>

#include <algorithm>
#include <array>

#include "plugin/engines/signal_masks.h"

namespace tailtrace {
namespace {

// signal(7): all others end the process.
bool ends_by_default(int signal) {
  constexpr std::array kOthers{SIGCHLD, SIGCONT, SIGURG,  SIGWINCH,
                               SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};
  return std::ranges::find(kOthers, signal) == kOthers.end();
}

}  // namespace

bool is_deadly(std::int32_t pid, int signal) {
  if (!ends_by_default(signal)) return false;
  const auto masks = signal_masks(pid);
  return masks && !masks->catches(signal) && !masks->ignores(signal);
}

}  // namespace tailtrace
