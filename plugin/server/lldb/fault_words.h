// What LLDB says of a fault beside the name of the signal, where its own lldb-server is not there
// to tell it: `signal SIGSEGV: address not mapped to object (fault address=0x10)`.
//
// Threading: any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace tailtrace {

// Of a signal, by the system's number, and its siginfo_t. Empty: LLDB has no words for it either,
// or the bytes are too few.
std::string fault_words(int signal, std::span<const std::uint8_t> info);

}  // namespace tailtrace
