// Unwinder: the stack of a thread that stands, by the unwinding tables of the files that are mapped
// (elfutils).
//
// Threading: one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decoder/base/types.h"

namespace tailtrace {

// General registers by their numbers in DWARF (System V ABI for x86-64, figure 3.36): rax, rdx,
// rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15, and behind them the instruction pointer.
struct StackRegisters {
  static constexpr std::size_t kInstructionPointer = 16;
  std::array<std::uint64_t, 17> values{};
};

class Unwinder {
 public:
  // Deeper stacks are cut.
  static constexpr std::size_t kMaxFrames = 1024;

  // Returns how many bytes could be read.
  using ReadMemory = std::function<std::size_t(Address, std::span<std::uint8_t>)>;

  // `maps` as /proc/PID/maps has it. `pid` of the process, if it lives: files that were deleted are
  // read as well.
  Unwinder(std::string_view maps, ReadMemory read, std::int32_t pid = 0);
  ~Unwinder();

  // Where the thread stands, and where each call that is open goes on, innermost first, as far as
  // the tables tell.
  std::vector<Address> stack(const StackRegisters& registers);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tailtrace
