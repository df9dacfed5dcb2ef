#include "plugin/engines/qemu_plugin/call_catch.h"

#include <sys/syscall.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "plugin/engines/qemu_plugin/call_trap.h"
#include "plugin/engines/qemu_plugin/flow.h"
#include "plugin/engines/qemu_plugin/leave_block.h"
#include "plugin/engines/qemu_plugin/signal_frame.h"
#include "plugin/engines/qemu_plugin/trap_mask.h"

namespace tailtrace {
namespace {

CaughtNumbers g_caught{};
bool g_catches = false;

// The call at which this thread was stopped and which it has not made yet: its place and stack.
struct CaughtCall {
  std::uint64_t pc, stack;
  bool operator==(const CaughtCall&) const = default;
};
constinit thread_local CaughtCall t_caught_call{0, 0};

enum class CatchStop { kNone, kBefore, kAt };
constinit thread_local CatchStop t_catch_stop = CatchStop::kNone;
constinit thread_local std::uint64_t t_caught_number = 0;
constinit thread_local bool t_trap_is_sure = false;

bool is_caught(std::uint64_t number) {
  return number < kMaxCaughtNumber && (g_caught.words[number / 64] >> number % 64 & 1) != 0;
}

bool changes_mask(std::uint64_t number) {
  return number == SYS_rt_sigprocmask || number == SYS_rt_sigreturn;
}

// Leaves the block there, and says so at the stop.
void stop_before(std::uint32_t cpu, const CaughtCall& place, CatchStop stop) {
  static constinit thread_local CaughtCall t_left{0, 0};
  const bool again = t_catch_stop != CatchStop::kNone && t_left == place;
  t_left = place;
  t_catch_stop = stop;
  Flow(cpu).cut_to(place.pc, 0);
  leave_block(again);
}

}  // namespace

void stop_at_call(std::uint32_t cpu, const BlockInfo& block, const std::uint64_t* registers) {
  if (!g_catches || block.call == BlockInfo::kNoCall) return;
  const CaughtCall place{block.begin, registers[kRsp]};
  if (block.insns == 1) {
    const bool is_told = t_catch_stop == CatchStop::kNone && t_caught_call == place;
    t_caught_number = registers[kRax];
    if (is_told || !is_caught(t_caught_number)) return;
    t_caught_call = place;
    t_trap_is_sure = !is_trap_blocked() && !changes_mask(t_caught_number);
    stop_before(cpu, place, CatchStop::kAt);
  } else if (block.call == BlockInfo::kAnyCall ||
             is_caught(static_cast<std::uint64_t>(block.call))) {
    stop_before(cpu, place, CatchStop::kBefore);
  }
}

void forget_stop_at_call(std::int64_t result) {
  if (result != kToBeMadeAgain) t_caught_call = {0, 0};
}

std::string caught_word() {
  const CatchStop stop = std::exchange(t_catch_stop, CatchStop::kNone);
  if (stop == CatchStop::kNone) return {};
  if (stop == CatchStop::kBefore) return "undone:;";
  char word[48];
  std::snprintf(word, sizeof word, "syscall_entry:%llx;%s",
                static_cast<unsigned long long>(t_caught_number), t_trap_is_sure ? "runs:;" : "");
  return word;
}

void renew_caught_calls() {
  g_caught = g_recorder.blocks.header().caught;
  g_catches = std::any_of(g_caught.words, std::end(g_caught.words),
                          [](std::uint64_t word) { return word != 0; });
}

void forget_caught_calls() {
  g_caught = {};
  g_catches = false;
}

}  // namespace tailtrace
