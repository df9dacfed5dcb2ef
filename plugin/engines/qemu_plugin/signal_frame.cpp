#include "plugin/engines/qemu_plugin/signal_frame.h"

#include <algorithm>
#include <csignal>
#include <cstring>

#include "plugin/engines/qemu_plugin/guest_memory.h"
#include "plugin/engines/qemu_plugin/kept_handler.h"
#include "plugin/engines/qemu_plugin/recorder.h"

namespace tailtrace {
namespace {

// struct ucontext and sigcontext of x86-64 (arch/x86/include/uapi/asm/ucontext.h, sigcontext.h):
// flags, link and stack_t, then r8..r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip.
constexpr std::uint64_t kRipInContext_bytes = 40 + 16 * 8;
constexpr std::uint64_t kCodeInInfo_bytes = 8;
// The context lies right above the return address, the siginfo not far above that.
constexpr std::uint64_t kMaxFrame_bytes = 4096;

template <class T>
T guest_value(std::uint64_t address) {
  T value;
  std::memcpy(&value, reinterpret_cast<const void*>(address + g_recorder.guest_base), sizeof value);
  return value;
}

// Where there is no siginfo, what processes send is taken for a fault as well.
bool is_raised_there(std::uint64_t signal, std::uint64_t info) {
  if (!is_of_instructions(signal)) return false;
  // qemu fills it in for handlers that asked for it only; what processes send has codes up to 0.
  std::lock_guard lock(g_recorder.lock);
  return !g_recorder.with_info[signal] || guest_value<std::int32_t>(info + kCodeInInfo_bytes) > 0;
}

}  // namespace

bool is_of_instructions(std::uint64_t signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL ||
         signal == SIGTRAP;
}

std::optional<SignalFrame> read_signal_frame(const std::uint64_t* registers) {
  std::uint64_t stack = registers[kRsp], context = registers[kRdx], info = registers[kRsi];
  std::uint64_t signal = registers[kRdi];
  if (context != stack + 8 || info <= context || info - context > kMaxFrame_bytes || signal == 0 ||
      signal > kMaxSignal)
    return std::nullopt;
  std::uint64_t restorer = 0;
  if (!read_guest(stack, &restorer, sizeof restorer)) return std::nullopt;
  {
    std::lock_guard lock(g_recorder.lock);
    const auto& known = g_recorder.restorers;
    if (std::find(known.begin(), known.end(), restorer) == known.end()) return std::nullopt;
  }
  SignalFrame frame;
  frame.pc = guest_value<std::uint64_t>(context + kRipInContext_bytes);
  frame.info = info;
  frame.signal = static_cast<std::uint16_t>(signal);
  frame.is_fault = is_raised_there(signal, info);
  return frame;
}

// What is moved ends with the siginfo; the state of the FPU lies behind it, where the context says.
void align_signal_frame(std::uint64_t* registers) {
  constexpr std::uint64_t kAlignment_bytes = 16, kMove_bytes = 8, kInfo_bytes = 128;
  const std::uint64_t stack = registers[kRsp];
  std::uint64_t below = 0;
  if (stack % kAlignment_bytes != 0 || !read_guest(stack - kMove_bytes, &below, sizeof below))
    return;
  auto* frame = reinterpret_cast<std::uint8_t*>(stack + g_recorder.guest_base);
  std::memmove(frame - kMove_bytes, frame, registers[kRsi] + kInfo_bytes - stack);
  for (GuestRegister pointer : {kRsp, kRsi, kRdx}) registers[pointer] -= kMove_bytes;
}

void learn_handler(std::uint64_t signal, std::uint64_t action) {
  constexpr std::size_t kMaxRestorers = 1024;
  if (action == 0 || signal > kMaxSignal || !g_recorder.knows_guest_base) return;
  KernelSigaction wanted;
  if (!read_guest(action, &wanted, sizeof wanted)) return;
  note_action(signal, wanted);
  std::lock_guard lock(g_recorder.lock);
  const bool is_handled = wanted.handler > 1;  // SIG_DFL, SIG_IGN
  g_recorder.with_trap[signal] = is_handled && (wanted.mask & kTrapInMask) == 0;
  if (!is_handled) return;
  g_recorder.blocks.care_for(wanted.handler, kCareHandler);
  g_recorder.with_info[signal] = (wanted.flags & SA_SIGINFO) != 0;
  auto& known = g_recorder.restorers;
  bool is_new = std::find(known.begin(), known.end(), wanted.restorer) == known.end();
  if (is_new && known.size() < kMaxRestorers) known.push_back(wanted.restorer);
}

}  // namespace tailtrace
