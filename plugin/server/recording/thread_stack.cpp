#include "plugin/server/recording/thread_stack.h"

#include "decoder/symbols/mapping.h"
#include "decoder/symbols/unwinder.h"

namespace tailtrace {
namespace {

// Numbers in `g` of the registers, in the order of DWARF's numbers. (LLDB's server has rsi and rdi
// the other way round, which no table asks for.)
constexpr std::size_t kPlaces[] = {0, 3, 2, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
static_assert(kPlaces[StackRegisters::kInstructionPointer] ==
              static_cast<std::size_t>(Below::Register::kRip));

}  // namespace

std::vector<Address> thread_stack(Below& below, ThreadId thread) {
  StackRegisters registers;
  static_assert(std::size(kPlaces) == std::tuple_size_v<decltype(registers.values)>);
  for (std::size_t i = 0; i < std::size(kPlaces); ++i) {
    auto value = below.read_register(thread, static_cast<Below::Register>(kPlaces[i]));
    if (!value) return {};
    registers.values[i] = *value;
  }
  auto maps = process_maps(thread.pid);
  if (!maps) return {};
  Unwinder unwinder(
      *maps, [&](Address address, auto out) { return below.read_memory(thread, address, out); },
      thread.pid);
  return unwinder.stack(registers);
}

}  // namespace tailtrace
