#include "plugin/server/monitor/sizes.h"

#include <gtest/gtest.h>

namespace tailtrace {
namespace {

TEST(Sizes, AreThoseOfTheDebuggerThatReads) {
  ServeOptions options;
  options.ring_records = 1 << 20;
  options.handover_instructions_lldb = 999;
  options.handover_instructions_pt = 1'234'567;
  options.handover_instructions_bts = 300'000;
  EXPECT_EQ(sizes_in_words(options, true, Reader::kLldb),
            "Of each thread the newest 1,048,576 branches are kept, and LLDB is given the newest "
            "999 instructions.");
  EXPECT_EQ(sizes_in_words(options, false, Reader::kGdb),
            "Of each thread GDB is given the newest 1,234,567 instructions (format bts: 300,000).");
}

}  // namespace
}  // namespace tailtrace
