#include "plugin/engines/qemu_plugin/unheard.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "plugin/engines/qemu_plugin/call_trap.h"
#include "plugin/engines/qemu_plugin/flow.h"
#include "plugin/engines/qemu_plugin/guest_memory.h"
#include "plugin/engines/qemu_plugin/signal_frame.h"

namespace tailtrace {
namespace {

// GDB's numbers.
constexpr int kInterrupt = 2, kIll = 4, kTrap = 5, kSegv = 11;

PassedNumbers g_passed{};

// More than debuggers have; the oldest ones are forgotten.
constexpr std::size_t kMaxBreakpoints = 4096;
std::vector<std::uint64_t> g_breakpoints;  // also those that were taken away

constinit std::atomic<bool> g_let_go{false};
constinit std::atomic<int> g_late_buses{0};
bool g_interrupt_comes = false;
unsigned g_came_before = 0;  // turns below this one are of threads that stopped for the debugger
std::mutex g_steps_lock;
std::vector<std::int32_t> g_steps;  // threads that were to step and have not told of it

// Whether this one was.
bool take_step() {
  std::lock_guard lock(g_steps_lock);
  return std::erase(g_steps, ::gettid()) != 0;
}

bool has_steps() {
  std::lock_guard lock(g_steps_lock);
  return !g_steps.empty();
}

bool is_at_breakpoint() {
  if (t_cpu < 0) return false;
  const std::uint64_t* registers = g_recorder.vcpu(static_cast<std::uint32_t>(t_cpu)).registers;
  if (registers == nullptr) return false;
  const std::uint64_t pc = registers[kRip];
  return std::ranges::find(g_breakpoints, pc) != g_breakpoints.end() && !has_trapped(pc);
}

bool is_for_debugger(int signal) {
  const bool was_to_step = take_step();
  if (signal == kInterrupt) return std::exchange(g_interrupt_comes, false);
  return signal == kTrap && (was_to_step || is_at_breakpoint());
}

// One that steps must be heard, and so must a fault at a breakpoint, as behind a call that the
// debugger makes.
bool is_passed(int signal) {
  if (signal <= 0 || signal >= 256 || signal == kInterrupt || signal == kTrap) return false;
  if ((g_passed.words[signal / 64] >> signal % 64 & 1) == 0 || is_stepped()) return false;
  return (signal != kIll && signal != kSegv) || !is_at_breakpoint();
}

}  // namespace

OwnAnswer answer_to_stop(const Stop& stop) {
  if (!was_let_go())
    return stop.is_plain && is_passed(stop.signal) ? OwnAnswer::kPassSignal : OwnAnswer::kNone;
  if (is_for_debugger(stop.signal) || stop.is_ours) return OwnAnswer::kGoOn;
  const bool is_late = static_cast<int>(stop.turn - g_came_before) >= 0;
  const bool is_last = is_late && !has_steps() && !g_interrupt_comes && g_late_buses.load() == 0;
  return is_last ? OwnAnswer::kHangUp : OwnAnswer::kPassSignal;
}

// `Z0,ADDRESS,KIND`, also of type 1.
void note_breakpoint(std::string_view request) {
  if (!request.starts_with("Z0,") && !request.starts_with("Z1,")) return;
  const std::string digits(request.substr(3, request.find(',', 3) - 3));
  const std::uint64_t address = std::strtoull(digits.c_str(), nullptr, 16);
  if (std::ranges::find(g_breakpoints, address) != g_breakpoints.end()) return;
  if (g_breakpoints.size() == kMaxBreakpoints) g_breakpoints.erase(g_breakpoints.begin());
  g_breakpoints.push_back(address);
}

void renew_unheard(unsigned came) {
  g_passed = g_recorder.blocks.header().passed;
  const LettingGo& letting_go = g_recorder.blocks.header().letting_go;
  if (letting_go.is_on == 0 || was_let_go()) return;
  g_came_before = came;
  g_interrupt_comes = letting_go.interrupt_comes != 0;
  {
    std::lock_guard lock(g_steps_lock);
    const std::size_t count = std::min<std::size_t>(letting_go.step_count, kMaxSteppedThreads);
    g_steps.assign(letting_go.steps, letting_go.steps + count);
  }
  g_recorder.options.follows_exec = letting_go.is_kept != 0;
  g_recorder.options.has_stub = false;  // for what the process executes from now on
  g_let_go.store(true);
}

bool was_let_go() { return g_let_go.load(); }

bool has_trapped(std::uint64_t pc) {
  if (t_cpu < 0) return false;
  Flow flow(static_cast<std::uint32_t>(t_cpu));
  const BlockInfo& info = flow.open_info();
  std::uint8_t code = 0;
  if (info.insns == 0 || info.end() != pc || !read_guest(flow.open().last, &code, 1)) return false;
  constexpr std::uint8_t kInt3 = 0xcc, kInt = 0xcd, kInt1 = 0xf1;
  return code == kInt3 || code == kInt || code == kInt1;
}

void forget_step() { take_step(); }

void count_late_bus(int change) { g_late_buses.fetch_add(change); }

void forget_unheard() {
  g_passed = {};
  g_breakpoints.clear();
  g_let_go.store(false);
  g_late_buses.store(0);
}

}  // namespace tailtrace
