// Unheard stops: stops of which no debugger is told, for it has let go of the program
// (BlocksHeader::letting_go). qemu 7.2's stub tells of them all the same and waits for a word to go
// on, and takes whatever it stopped for as the program's signal once nobody is there: what only the
// debugger wanted would end the program.
//
// So what it says is dropped, and its questions are answered here (stub_gate.h). Threads that
// waited in front of the stub as the debugger let go, and those that finish a step later, go on;
// signals of the program reach it. When nothing of the debugger's is on its way any more, the stub
// is told that its connection has ended, and stops for nothing from then on.
//
// Threading: on the thread that stands in the stub, unless said otherwise.
#pragma once

#include <cstdint>
#include <string_view>

namespace tailtrace {

// What the stub is told in the debugger's place, of this thread's stop.
enum class OwnAnswer {
  kNone,        // it is the debugger's to answer
  kGoOn,        // the stop was for the debugger alone
  kPassSignal,  // the program is to have its signal
  kHangUp,      // the same, and there is no debugger
};

// A thread's stop for this signal, by GDB's number.
struct Stop {
  int signal;
  bool is_ours;   // the recorder stopped it
  bool is_plain;  // nothing else is to be said of it
  unsigned turn;  // of its coming to the stub
};
OwnAnswer answer_to_stop(const Stop& stop);

// A request to the stub, which may set a breakpoint.
void note_breakpoint(std::string_view request);

// The debugger may let go, or want other signals passed. `came`: the turn of the next thread to
// come to the stub. Before any other thread runs.
void renew_unheard(unsigned came);

// Whether it has. On any thread.
bool was_let_go();

// Whether the instruction that has brought this thread to `pc` is a trap of the program's own.
bool has_trapped(std::uint64_t pc);

// The thread ends; on the thread itself.
void forget_step();

// A SIGBUS of ours waits until the program blocks it no more, or has come; on the thread that it is
// about.
void count_late_bus(int change);

// In the child of a fork, which no debugger holds.
void forget_unheard();

}  // namespace tailtrace
