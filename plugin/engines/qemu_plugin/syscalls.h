// System calls that the recorder has to know about.
//
// Threading: on the calling thread.
#pragma once

#include <array>
#include <cstdint>

namespace tailtrace {

using SyscallArguments = std::array<std::uint64_t, 6>;

// Before qemu does it.
void enter_syscall(std::uint32_t cpu, std::int64_t number, const SyscallArguments& arguments);

// After it; not called for those that do not return.
void leave_syscall(std::uint32_t cpu, std::int64_t number, std::int64_t result);

}  // namespace tailtrace
