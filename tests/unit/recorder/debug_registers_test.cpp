#include "plugin/recorder/debug_registers.h"

#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include <cstddef>

#include "tests/support/child.h"

namespace tailtrace {
namespace {

// Before 5.10 the kernel left a hit in the status register for whoever looked next.
TEST(DebugRegisters, AHitOfFormerPlacesIsForgotten) {
  Child child({});
  constexpr std::size_t kStatus = offsetof(user, u_debugreg) + 6 * sizeof(unsigned long);
  auto leave_a_hit = [&] { ASSERT_EQ(::ptrace(PTRACE_POKEUSER, child.pid(), kStatus, 1ul), 0); };
  leave_a_hit();
  EXPECT_EQ(take_debug_hit(child.pid()), 0u);
  leave_a_hit();
  ASSERT_TRUE(set_debug_places(child.pid(), {}));
  EXPECT_FALSE(take_debug_hit(child.pid()));
}

}  // namespace
}  // namespace tailtrace
