// Signal numbers: the remote protocol has GDB's own, the system has Linux's.
//
// Threading: pure functions.
#pragma once

#include <cstdint>

namespace tailtrace {

// Linux's number of a protocol signal; 0 when there is none.
int system_signal(std::uint8_t protocol_signal);

// The inverse; 0 when the protocol has no name for it.
std::uint8_t protocol_signal(int system_signal);

constexpr std::uint8_t kProtocolSigInt = 2;
constexpr std::uint8_t kProtocolSigTrap = 5;

// What the thread library uses between its threads: never the user's business.
constexpr bool is_of_threads(int system_signal) {
  return system_signal == 32 || system_signal == 33;
}

// SIGILL, SIGFPE, SIGBUS, SIGSEGV: what an instruction raises about itself.
bool is_fault(int system_signal);

}  // namespace tailtrace
