#include "plugin/server/lldb/fault_words.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstddef>

#include "decoder/base/bytes.h"

namespace tailtrace {
namespace {

struct FaultCause {
  int signal, code;
  const char* words;
  bool has_address = false;
};

// As LLDB 22 says them; sigaction(2) has their meanings.
constexpr FaultCause kFaultCauses[] = {
    {SIGSEGV, SEGV_MAPERR, "SIGSEGV: address not mapped to object", true},
    {SIGSEGV, SEGV_ACCERR, "SIGSEGV: invalid permissions for mapped object", true},
    {SIGSEGV, SI_KERNEL, "SIGSEGV: sent by kernel (SI_KERNEL)"},
    {SIGSEGV, SI_TKILL, "SIGSEGV: sent by tkill system call"},
    {SIGBUS, BUS_ADRALN, "SIGBUS: illegal alignment"},
    {SIGBUS, BUS_ADRERR, "SIGBUS: illegal address"},
    {SIGBUS, BUS_OBJERR, "SIGBUS: hardware error"},
    {SIGFPE, FPE_INTDIV, "SIGFPE: integer divide by zero"},
    {SIGFPE, FPE_INTOVF, "SIGFPE: integer overflow"},
    {SIGFPE, FPE_FLTDIV, "SIGFPE: floating point divide by zero"},
    {SIGILL, ILL_ILLOPC, "SIGILL: illegal opcode"},
    {SIGILL, ILL_ILLOPN, "SIGILL: illegal operand"},
};

}  // namespace

std::string fault_words(int signal, std::span<const std::uint8_t> info) {
  if (info.size() < offsetof(siginfo_t, si_addr) + sizeof(std::uint64_t)) return {};
  const auto code = load<std::int32_t>(info, offsetof(siginfo_t, si_code));
  const auto* cause = std::ranges::find_if(
      kFaultCauses, [&](const FaultCause& c) { return c.signal == signal && c.code == code; });
  if (cause == std::end(kFaultCauses)) return {};
  std::string words = fmt::format("signal {}", cause->words);
  if (cause->has_address)
    words += fmt::format(" (fault address={:#x})",
                         load<std::uint64_t>(info, offsetof(siginfo_t, si_addr)));
  return words;
}

}  // namespace tailtrace
