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

// What single steps through the vDSO see: the stacks at each instruction of it.
struct VdsoSteps {
  Address begin, end;
  Unwinder unwinder{own_maps(), read_own};
  std::vector<Stacks> stacks = {};
};
VdsoSteps* g_steps = nullptr;

void take_step(int, siginfo_t*, void* context) {
  const StackRegisters registers = registers_in(*static_cast<ucontext_t*>(context));
  const Address pc{registers.values[StackRegisters::kInstructionPointer]};
  if (pc < g_steps->begin || pc >= g_steps->end) return;
  Stacks stacks;
  _Unwind_Backtrace(add_theirs, &stacks);
  // Theirs begins with this handler.
  stacks.theirs.erase(stacks.theirs.begin(), std::ranges::find(stacks.theirs, pc));
  stacks.ours = g_steps->unwinder.stack(registers);
  g_steps->stacks.push_back(std::move(stacks));
}

TEST(Unwinder, FindsTheStackOfAThreadThatStandsInTheVdso) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the handler takes memory: what it interrupts takes none, and no sanitizer knows";
#endif
  const auto vdso = vdso_in(own_maps());
  if (!vdso) GTEST_SKIP() << "this kernel gives processes no vDSO (vdso=0): none to stand in";
  void* image = ::dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD);
  auto* read_time_zone =
      reinterpret_cast<decltype(&::gettimeofday)>(::dlsym(image, "__vdso_gettimeofday"));
  ASSERT_NE(read_time_zone, nullptr);
  VdsoSteps steps{vdso->first, vdso->second};
  g_steps = &steps;
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
  ASSERT_GT(steps.stacks.size(), 5u);
  for (const Stacks& at : steps.stacks) {
    EXPECT_GT(at.ours.size(), 2u);
    EXPECT_EQ(at.ours, at.theirs) << std::hex << at.ours.front().value;
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
