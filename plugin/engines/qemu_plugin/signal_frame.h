// The frame that qemu builds on the guest's stack before it enters a signal handler; it tells
// exactly where the program was interrupted.
//
// Threading: functions on the thread's own registers and stack.
#pragma once

#include <csignal>
#include <cstdint>
#include <optional>

namespace tailtrace {

struct SignalFrame {
  std::uint64_t pc;      // interrupted: the instruction there was not executed
  std::uint64_t info;    // the address of the siginfo
  std::uint16_t signal;  // its number
  bool is_fault;         // the instruction at `pc` was tried and raised it
};

// qemu's copy of the guest's registers, in the order of x86 instructions' register numbers.
enum GuestRegister { kRax = 0, kRdx = 2, kRsp = 4, kRsi = 6, kRdi = 7, kRip = 16 };

// The frame, if the thread has just entered a handler with these registers; nothing when the
// function was simply called.
std::optional<SignalFrame> read_signal_frame(const std::uint64_t* registers);

// Puts a frame that was just read where the kernel would have put it: with the stack 8 bytes off a
// multiple of 16, as behind a call. qemu 7.2 puts it at a multiple, and a handler that keeps
// vectors on its stack faults. REQUIRES: nothing of the block was executed, so that `registers` are
// all there is.
void align_signal_frame(std::uint64_t* registers);

// Whether instructions raise this signal; processes may send it, too.
bool is_of_instructions(std::uint64_t signal);

constexpr std::uint64_t kTrapInMask = 1ull << (SIGTRAP - 1);  // of the kernel's sigset_t

// Remembers what rt_sigaction's second argument, a guest address, says of a signal.
void learn_handler(std::uint64_t signal, std::uint64_t action);

}  // namespace tailtrace
