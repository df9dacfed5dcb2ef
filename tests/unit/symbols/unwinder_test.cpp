#include "decoder/symbols/unwinder.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>
#include <x86intrin.h>

#include <algorithm>
#include <array>
#include <memory>

#include "decoder/base/file.h"
#include "decoder/code/vdso.h"

namespace tailtrace {
namespace {

std::size_t read_own(Address address, std::span<std::uint8_t> out) {
  iovec here{out.data(), out.size()};
  iovec there{reinterpret_cast<void*>(address.value), out.size()};
  const ssize_t n = ::process_vm_readv(::getpid(), &here, 1, &there, 1, 0);
  return n < 0 ? 0 : static_cast<std::size_t>(n);
}

std::string own_maps() { return std::string(as_text(*read_file("/proc/self/maps", 1 << 24))); }

StackRegisters registers_in(const ucontext_t& context) {
  constexpr int kOrder[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                            REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                            REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  StackRegisters registers;
  for (std::size_t i = 0; i < std::size(kOrder); ++i)
    registers.values[i] = static_cast<std::uint64_t>(context.uc_mcontext.gregs[kOrder[i]]);
  return registers;
}

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
  stacks.ours = Unwinder(own_maps(), read_own).stack(registers_in(context));
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

// What a single step through the vDSO sees, without taking memory: it is a signal that interrupts
// the thread.
struct VdsoStep {
  StackRegisters registers;
  std::array<std::uint8_t, 512> top;  // of the stack; what lies behind stays as it is meanwhile
  std::array<Address, 256> theirs;
  std::size_t their_count = 0;

  Address sp() const { return {registers.values[7]}; }
  std::size_t read(Address address, std::span<std::uint8_t> out) const {
    const bool is_top = address >= sp() && address - sp() + out.size() <= top.size();
    if (!is_top) return read_own(address, out);
    std::copy_n(&top[address - sp()], out.size(), out.data());
    return out.size();
  }
};

struct VdsoSteps {
  Address begin, end;
  std::array<VdsoStep, 512> steps{};
  std::size_t count = 0;
};
VdsoSteps* g_steps = nullptr;

_Unwind_Reason_Code add_to_step(_Unwind_Context* context, void* to) {
  auto& step = *static_cast<VdsoStep*>(to);
  const Address ip{_Unwind_GetIP(context)};
  const Address pc{step.registers.values[StackRegisters::kInstructionPointer]};
  // It begins with this handler.
  const bool is_of_vdso = step.their_count != 0 || ip == pc;
  if (is_of_vdso && !ip.is_null() && step.their_count < step.theirs.size())
    step.theirs[step.their_count++] = ip;
  return _URC_NO_REASON;
}

void take_step(int, siginfo_t*, void* context) {
  const StackRegisters registers = registers_in(*static_cast<ucontext_t*>(context));
  const Address pc{registers.values[StackRegisters::kInstructionPointer]};
  if (pc < g_steps->begin || pc >= g_steps->end || g_steps->count == g_steps->steps.size()) return;
  VdsoStep& step = g_steps->steps[g_steps->count++];
  step.registers = registers;
  read_own(step.sp(), step.top);
  _Unwind_Backtrace(add_to_step, &step);
}

TEST(Unwinder, FindsTheStackOfAThreadThatStandsInTheVdso) {
  const auto vdso = vdso_in(own_maps());
  if (!vdso) GTEST_SKIP() << "this kernel gives processes no vDSO (vdso=0): none to stand in";
  void* image = ::dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD);
  auto* read_time_zone =
      reinterpret_cast<decltype(&::gettimeofday)>(::dlsym(image, "__vdso_gettimeofday"));
  ASSERT_NE(read_time_zone, nullptr);
  auto steps = std::make_unique<VdsoSteps>(VdsoSteps{vdso->first, vdso->second});
  g_steps = steps.get();
  struct sigaction action {};
  struct sigaction before {};
  action.sa_sigaction = take_step;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGTRAP, &action, &before);
  constexpr std::uint64_t kTrapFlag = 0x100;
  struct timezone zone {};
  __writeeflags(__readeflags() | kTrapFlag);
  // The time itself is read again if the clock goes on meanwhile, so that steps would never end.
  read_time_zone(nullptr, &zone);
  __writeeflags(__readeflags() & ~kTrapFlag);
  ::sigaction(SIGTRAP, &before, nullptr);
  ASSERT_GT(steps->count, 5u);
  ASSERT_LT(steps->count, steps->steps.size());
  const VdsoStep* at = &steps->steps.front();
  Unwinder unwinder(own_maps(), [&](Address address, std::span<std::uint8_t> out) {
    return at->read(address, out);
  });
  for (std::size_t i = 0; i < steps->count; ++i) {
    at = &steps->steps[i];
    const std::vector<Address> theirs(at->theirs.begin(), at->theirs.begin() + at->their_count);
    EXPECT_GT(theirs.size(), 2u);
    EXPECT_EQ(unwinder.stack(at->registers), theirs) << std::hex << theirs.front().value;
  }
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
