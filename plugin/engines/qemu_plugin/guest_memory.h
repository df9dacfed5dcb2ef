// The guest's memory, read without trusting its pointers.
//
// Threading: functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tailtrace {

// Copies from guest memory. False when any of it cannot be read.
bool read_guest(std::uint64_t address, void* to, std::size_t size_bytes);

// A NUL-terminated string of at most `limit` bytes; nothing when it cannot be read or is longer.
std::optional<std::string> read_guest_string(std::uint64_t address, std::size_t limit);

}  // namespace tailtrace
