// GuestSignal: the numbers of signals of programs under qemu-user.
//
// This header is shared with code that lives inside qemu's process; it needs no library.
#pragma once

#include <signal.h>

namespace tailtrace {

// The program's number of a signal of the host's. The C library keeps the first realtime ones for
// itself, which qemu leaves out (signal_table_init in linux-user/signal.c).
inline int guest_signal(int host_signal) {
  constexpr int kFirstRealtime = 32;  // the kernel's
  return host_signal < SIGRTMIN ? host_signal : host_signal - SIGRTMIN + kFirstRealtime;
}

}  // namespace tailtrace
