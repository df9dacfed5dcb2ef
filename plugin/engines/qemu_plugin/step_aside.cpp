#include "plugin/engines/qemu_plugin/step_aside.h"

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "plugin/engines/qemu_plugin/flow.h"
#include "plugin/engines/qemu_plugin/leave_block.h"

namespace tailtrace {
namespace {

// GDB's numbers.
constexpr int kProtocolBus = 10, kProtocolSegv = 11;

constinit thread_local bool t_steps_aside = false;
constinit std::int32_t g_selected_tid = 0;  // of the thread that is inside

}  // namespace

void step_aside(std::uint32_t cpu, std::uint64_t pc) {
  const bool again = std::exchange(t_steps_aside, true);
  Flow flow(cpu);
  const int done = flow.open_info().index_of(pc);
  if (done >= 0) flow.cut_to(pc, done);
  leave_block(again);
}

bool has_stepped_aside(int signal) {
  return (signal == kProtocolBus || signal == kProtocolSegv) && std::exchange(t_steps_aside, false);
}

// `HgpPID.TID`; `g`, `G`, `p` or `P`.
std::int32_t thread_of_registers(std::string_view request) {
  if (request.starts_with("Hg")) {
    const std::string digits(request.substr(request.find('.') + 1));
    g_selected_tid = static_cast<std::int32_t>(std::strtol(digits.c_str(), nullptr, 16));
  }
  const bool is_of_registers =
      !request.empty() && std::string_view("gGpP").find(request[0]) != std::string_view::npos;
  return is_of_registers ? g_selected_tid : 0;
}

void select_own_thread() { g_selected_tid = ::gettid(); }

}  // namespace tailtrace
