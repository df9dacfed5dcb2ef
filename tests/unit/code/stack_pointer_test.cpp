#include "decoder/code/stack_pointer.h"

#include <gtest/gtest.h>

namespace tailtrace {
namespace {

bool loads(const char* hex) { return loads_stack_pointer(*from_hex(hex)); }

// As GNU as assembles them.
TEST(StackPointer, IsLoadedByWhoGoesToAnotherStack) {
  EXPECT_TRUE(loads("488ba2a0000000"));  // mov 0xa0(%rdx),%rsp
  EXPECT_TRUE(loads("488b26"));          // mov (%rsi),%rsp
  EXPECT_TRUE(loads("488b23"));          // mov (%rbx),%rsp
  EXPECT_TRUE(loads("498b24d4"));        // mov (%r12,%rdx,8),%rsp
  EXPECT_TRUE(loads("488b2578563412"));  // mov 0x12345678(%rip),%rsp
  EXPECT_TRUE(loads("4889fc"));          // mov %rdi,%rsp
  EXPECT_TRUE(loads("4c89c4"));          // mov %r8,%rsp
  EXPECT_TRUE(loads("488be7"));          // mov.s %rdi,%rsp
  EXPECT_TRUE(loads("488726"));          // xchg %rsp,(%rsi)
  EXPECT_TRUE(loads("4894"));            // xchg %rax,%rsp
  EXPECT_TRUE(loads("5c"));              // pop %rsp
}

TEST(StackPointer, IsNotLoadedByWhoLeavesAFrame) {
  EXPECT_FALSE(loads("4889ec"));      // mov %rbp,%rsp
  EXPECT_FALSE(loads("4889dc"));      // mov %rbx,%rsp
  EXPECT_FALSE(loads("4c89e4"));      // mov %r12,%rsp
  EXPECT_FALSE(loads("488b642418"));  // mov 0x18(%rsp),%rsp
  EXPECT_FALSE(loads("488b65f8"));    // mov -0x8(%rbp),%rsp
  EXPECT_FALSE(loads("488d65d8"));    // lea -0x28(%rbp),%rsp
  EXPECT_FALSE(loads("4883c418"));    // add $0x18,%rsp
  EXPECT_FALSE(loads("c9"));          // leave
  EXPECT_FALSE(loads("415c"));        // pop %r12
  EXPECT_FALSE(loads("4994"));        // xchg %rax,%r12
  EXPECT_FALSE(loads("4c8b26"));      // mov (%rsi),%r12
  EXPECT_FALSE(loads("4989fc"));      // mov %rdi,%r12
  EXPECT_FALSE(loads("488922"));      // mov %rsp,(%rdx)
  EXPECT_FALSE(loads("4889e7"));      // mov %rsp,%rdi
  EXPECT_FALSE(loads("48"));          // no instruction
  EXPECT_FALSE(loads(""));
}

}  // namespace
}  // namespace tailtrace
