#include "plugin/recorder/signal_fate.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "decoder/base/file.h"

namespace tailtrace {
namespace {

constexpr std::size_t kMaxStatus_bytes = 1 << 16;
constexpr std::size_t kMask_digits = 16;

// A line of the status, "SigCgt:\t0000000180004a43".
bool is_in_mask(std::string_view status, std::string_view name, int signal) {
  const std::size_t at = status.find(name);
  if (at == status.npos || signal <= 0 || signal > 64) return false;
  auto mask = parse_hex(status.substr(at + name.size(), kMask_digits));
  return mask && (*mask >> (signal - 1) & 1) != 0;
}

// signal(7): all others end the process.
bool ends_by_default(int signal) {
  constexpr std::array kOthers{SIGCHLD, SIGCONT, SIGURG,  SIGWINCH,
                               SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};
  return std::ranges::find(kOthers, signal) == kOthers.end();
}

}  // namespace

bool is_deadly(std::int32_t pid, int signal) {
  if (!ends_by_default(signal)) return false;
  auto status = read_file(fmt::format("/proc/{}/status", pid), kMaxStatus_bytes);
  if (!status) return false;
  return !is_in_mask(as_text(*status), "SigCgt:\t", signal) &&
         !is_in_mask(as_text(*status), "SigIgn:\t", signal);
}

}  // namespace tailtrace
