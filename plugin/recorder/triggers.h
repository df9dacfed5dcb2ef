// Words for what ends a recording: names of signals, places in memory.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "decoder/base/result.h"
#include "plugin/recorder/flight.h"

namespace tailtrace {

// "SIGUSR1", "USR1" or "10". Errors: kUsage; also for SIGKILL and SIGSTOP, which nobody sees come.
Result<int> parse_signal(std::string_view text);

// "SIGSEGV"; "signal 34" for one without a name.
std::string signal_text(int signal);

// "0x5578a0", or "0x5578a0:4" for the number of bytes. Errors: kUsage.
Result<WatchedPlace> parse_watched(std::string_view text, bool reads);

// Signals by which a program ends that something is wrong with: those that dump core (signal(7)).
bool is_crash_signal(int signal);

}  // namespace tailtrace
