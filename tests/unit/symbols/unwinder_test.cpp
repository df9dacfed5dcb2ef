#include "decoder/symbols/unwinder.h"

#include <gtest/gtest.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "decoder/base/file.h"

namespace tailtrace {
namespace {

std::size_t read_own(Address address, std::span<std::uint8_t> out) {
  iovec here{out.data(), out.size()};
  iovec there{reinterpret_cast<void*>(address.value), out.size()};
  const ssize_t n = ::process_vm_readv(::getpid(), &here, 1, &there, 1, 0);
  return n < 0 ? 0 : static_cast<std::size_t>(n);
}

std::string own_maps() { return std::string(as_text(*read_file("/proc/self/maps", 1 << 24))); }

struct Stacks {
  std::vector<Address> ours;
  std::vector<Address> theirs;  // those of the library that finds handlers of exceptions
};

_Unwind_Reason_Code add_theirs(_Unwind_Context* context, void* stacks) {
  if (const std::uint64_t ip = _Unwind_GetIP(context); ip != 0)
    static_cast<Stacks*>(stacks)->theirs.push_back({ip});
  return _URC_NO_REASON;
}

__attribute__((noinline)) Stacks both_stacks() {
  Stacks stacks;
  _Unwind_Backtrace(add_theirs, &stacks);
  ucontext_t context;
  ::getcontext(&context);
  const greg_t* r = context.uc_mcontext.gregs;
  StackRegisters registers;
  const int order[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                       REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                       REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  for (std::size_t i = 0; i < std::size(order); ++i)
    registers.values[i] = static_cast<std::uint64_t>(r[order[i]]);
  stacks.ours = Unwinder(own_maps(), read_own).stack(registers);
  return stacks;
}

__attribute__((noinline)) Stacks deeper(int levels) {
  Stacks stacks = levels == 0 ? both_stacks() : deeper(levels - 1);
  __asm__ volatile("");
  return stacks;
}

TEST(Unwinder, FindsTheStackThatAnExceptionGoesThrough) {
  Stacks stacks = deeper(20);
  ASSERT_GT(stacks.theirs.size(), 22u);
  ASSERT_EQ(stacks.ours.size(), stacks.theirs.size());
  // Both look from another instruction of the innermost function.
  stacks.ours.erase(stacks.ours.begin());
  stacks.theirs.erase(stacks.theirs.begin());
  EXPECT_EQ(stacks.ours, stacks.theirs);
}

TEST(Unwinder, HasWhereTheThreadStandsAtLeast) {
  StackRegisters nowhere;
  nowhere.values[StackRegisters::kInstructionPointer] = 0x1234;
  for (const std::string& maps : {own_maps(), std::string("no maps at all\n"), std::string()})
    EXPECT_EQ(Unwinder(maps, read_own).stack(nowhere), std::vector<Address>{{0x1234}});
  auto nothing_to_read = [](Address, std::span<std::uint8_t>) { return std::size_t{0}; };
  EXPECT_EQ(Unwinder(own_maps(), nothing_to_read).stack(nowhere), std::vector<Address>{{0x1234}});
}

}  // namespace
}  // namespace tailtrace
