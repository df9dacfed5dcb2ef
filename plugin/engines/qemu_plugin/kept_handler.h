// Kept handler: what the program does at a SIGSEGV. A thread that leaves its block while the
// program blocks all signals does so as one that faults (leave_block.h), and qemu 7.2 does as the
// kernel then: it forgets the program's handler (process_pending_signals in linux-user/signal.c).
// Here it is put back before anything runs.
//
// qemu tells nobody where its table of them is. But what the program has asked for is known, and
// stands there: the table is found by that, or the handler stays lost.
//
// Threading: any thread, unless said otherwise.
#pragma once

#include <array>
#include <cstdint>

namespace tailtrace {

// struct sigaction as the kernel takes it on x86-64 (arch/x86/include/uapi/asm/signal.h), and as
// qemu keeps it.
struct KernelSigaction {
  std::uint64_t handler;
  std::uint64_t flags;
  std::uint64_t restorer;
  std::uint64_t mask;

  bool operator==(const KernelSigaction&) const = default;
};

// The program asks for it.
void note_action(std::uint64_t signal, const KernelSigaction& action);

// The thread is about to fault for us.
void keep_handler();

// It has stopped for that; on the same thread. Nothing if it did not.
void put_back_handler();

}  // namespace tailtrace
