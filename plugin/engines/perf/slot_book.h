// slot_book: which debug registers of which threads this process holds as perf events, and for
// what. The kernel only says that none is free; with the book a message can say who has them.
//
// Threading: any thread may use it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tailtrace::perf {

// x86 has four, and the kernel lets each of them be used once for each thread.
constexpr std::size_t kDebugRegisters = 4;

// As long as one lives, a register of the thread is held for what `name` says.
class SlotHold {
 public:
  SlotHold(std::int32_t tid, const std::string& name);
  SlotHold(SlotHold&& other) noexcept;
  SlotHold& operator=(SlotHold&& other) noexcept;
  ~SlotHold();

 private:
  std::uint64_t number_ = 0;  // 0: none
};

// What they are held for, the longest held first.
std::vector<std::string> slots_held(std::int32_t tid);

}  // namespace tailtrace::perf
