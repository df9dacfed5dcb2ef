// The stub gate: one thread at a time stands in qemu's gdb stub, and the others stand still.
//
// In qemu 7.2 (gdb_handlesig in gdbstub.c) every thread that stops uses the stub's one connection
// and one buffer as if it were alone: two that stop at once mix their words and take each other's
// requests. Threads that do not stop run on. Here only one is let in. The others wait before they
// say that they have stopped, at the beginning of their next block, or at either end of a system
// call, until the one inside is told to run; those that have stopped go in one after the other. One
// that stops again without having executed anything goes behind those that wait. One that waits
// before a block steps aside when it is to step, or the debugger changes its registers
// (step_aside.h).
//
// How it is known: qemu formats a stop reply with g_string_printf and reads requests with read, and
// both calls are made to come here first. A stop for lack of room (thread_room.h) is told as such
// there, and so is one of a thread that was told to run and has executed nothing: qemu takes for a
// finished step that another thread, which needs all others to stand still (fork, tb_flush, a lock
// across cache lines), made it leave its block before that began (cpu_tb_exec in cpu-exec.c).
//
// A thread that ends frees what qemu knows of it while it still stands in the list of threads
// (tcg_exec_unrealizefn in cpu-exec.c), and the stub goes through that list: to answer, and, behind
// each stop, to flush all translated code, which wrote to freed memory. So no thread ends while one
// is inside or has yet to execute what was flushed for it, and none goes in while one ends.
//
// Threading: on the thread that it is about.
#pragma once

#include <atomic>
#include <cstdint>

// kSlowBlock while some thread is inside, or has left and executed nothing since; each block looks
// at it. 0 otherwise.
extern "C" __attribute__((visibility("hidden"))) std::atomic<std::uint64_t> tailtrace_all_slow;

namespace tailtrace {

// Puts the gate up. False: this qemu's calls cannot be taken. Before there are threads.
bool put_up_stub_gate();

// The thread is about to execute the block that begins at `pc`, or the instructions behind a system
// call when it is 0. May wait. Takes no lock, and none may be held.
void pass_stub_gate(std::uint32_t cpu, std::uint64_t pc);

// The thread makes a system call now. May wait.
void wait_at_stub_gate(std::uint32_t cpu);

// The thread ends: qemu frees its memory next. May wait.
void end_at_stub_gate();

// In the child of a fork, which qemu's stub does not hold.
void take_down_stub_gate();

}  // namespace tailtrace
