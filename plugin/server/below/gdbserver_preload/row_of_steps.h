// RowOfSteps: in gdbserver, and in lldb-server, makes the steps of a row (step_row.h) behind the
// one that the server has made.
//
// The stop behind each step stays where the server would find it: it is looked at, not taken
// (WNOWAIT), and gone when the thread goes on. So the server finds the last one, as if it had been
// the only one, and whatever else stops a thread meanwhile.
//
// Threading: the thread that traces.
#pragma once

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "decoder/code/prefixes.h"
#include "plugin/server/below/gdbserver_preload/step_row.h"

namespace tailtrace {

// INS, OUTS; MOVS, CMPS; STOS, LODS, SCAS.
constexpr bool is_of_strings(std::uint8_t opcode) {
  return (opcode & 0xfc) == 0x6c || (opcode & 0xfc) == 0xa4 || (opcode >= 0xaa && opcode <= 0xaf);
}

// Whether code may make a system call, raise an interrupt or repeat itself: what the proxy is asked
// about before each step of it. `code` is what lies at the pc, little-endian. SDM volume 2, 2.1.
constexpr bool is_to_be_asked_about(std::uint64_t code) {
  bool repeats = false;
  for (unsigned left = sizeof code; left > 1; --left, code >>= 8) {
    const auto byte = static_cast<std::uint8_t>(code);
    const auto next = static_cast<std::uint8_t>(code >> 8);
    repeats |= byte == 0xf2 || byte == 0xf3;
    if (is_legacy_prefix(byte) || (byte & 0xf0) == 0x40) continue;  // or REX
    if (byte == 0x0f) return next == 0x05 || next == 0x34;          // SYSCALL, SYSENTER
    if (byte == 0xcc || byte == 0xcd || byte == 0xf1) return true;  // INT3, INT, INT1
    return repeats && is_of_strings(byte);
  }
  return true;  // there are no more bytes to tell
}

// Whether code is a conditional branch to a lower address. (The vDSO has none with a prefix.) SDM
// volume 2, Jcc, LOOP, JRCXZ.
constexpr bool may_lead_back(std::uint64_t code) {
  const auto byte = [&](unsigned place) { return static_cast<std::uint8_t>(code >> 8 * place); };
  if ((byte(0) & 0xf0) == 0x70 || (byte(0) & 0xfc) == 0xe0) return byte(1) >= 0x80;
  return byte(0) == 0x0f && (byte(1) & 0xf0) == 0x80 && byte(5) >= 0x80;
}

class RowOfSteps {
 public:
  using Ptrace = long (*)(int, pid_t, void*, void*);

  RowOfSteps(StepRowMemory& row, Ptrace ptrace) : row_(row), ptrace_(ptrace) {}

  // The server has resumed the thread for a step, without a signal. Returns when it has come to the
  // end of its row, or that cannot be told.
  void follow(pid_t tid) {
    std::int32_t wanted = tid;
    if (!row_.thread.compare_exchange_strong(wanted, 0)) return;
    sigset_t child, before;  // it is told of the last stop
    ::sigemptyset(&child);
    ::sigaddset(&child, SIGCHLD);
    ::pthread_sigmask(SIG_BLOCK, &child, &before);
    const int error = errno;
    std::uint32_t steps = 0;
    while (steps < std::min(row_.most_steps, StepRowMemory::kMost_steps)) {
      const auto pc = plain_step(tid);
      if (!pc) break;
      row_.pcs[steps] = *pc;
      if (ptrace_(PTRACE_SINGLESTEP, tid, nullptr, nullptr) != 0) break;
      row_.steps.store(++steps);
    }
    errno = error;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

 private:
  // Where the thread is, if all that happened is that its step has ended, and it may go on.
  std::optional<std::uint64_t> plain_step(pid_t tid) const {
    siginfo_t seen{}, why{};
    while (::waitid(P_ALL, 0, &seen, WSTOPPED | WEXITED | WNOWAIT | __WALL) != 0)
      if (errno != EINTR) return std::nullopt;
    if (seen.si_pid != tid || seen.si_code != CLD_TRAPPED || seen.si_status != SIGTRAP ||
        ptrace_(PTRACE_GETSIGINFO, tid, nullptr, &why) != 0 || why.si_code != TRAP_TRACE)
      return std::nullopt;
    const auto pc = peek(PTRACE_PEEKUSER, tid, offsetof(user, regs.rip));
    if (!pc || !is_in_its_code(*pc)) return std::nullopt;
    const auto code = peek(PTRACE_PEEKTEXT, tid, *pc);
    if (!code || is_to_be_asked_about(*code)) return std::nullopt;
    return row_.ends_at_loops != 0 && may_lead_back(*code) ? std::nullopt : pc;
  }

  bool is_in_its_code(std::uint64_t pc) const {
    using Range = StepRowMemory::Range;
    const auto has = [&](const Range& range) { return range.begin <= pc && pc < range.end; };
    const std::span<const Range> code(row_.code,
                                      std::min(row_.ranges, StepRowMemory::kMost_ranges));
    const auto behind = std::ranges::upper_bound(code, pc, {}, &Range::begin);
    return has(row_.within) && behind != code.begin() && has(behind[-1]);
  }

  std::optional<std::uint64_t> peek(int request, pid_t tid, std::uint64_t place) const {
    errno = 0;
    const long word = ptrace_(request, tid, reinterpret_cast<void*>(place), nullptr);
    if (word == -1 && errno != 0) return std::nullopt;
    return static_cast<std::uint64_t>(word);
  }

  StepRowMemory& row_;
  Ptrace ptrace_;
};

}  // namespace tailtrace
