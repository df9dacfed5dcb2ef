#include "decoder/base/process_status.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace tailtrace {
namespace {

TEST(ProcessStatus, HasValuesByTheirNames) {
  constexpr std::string_view kStatus =
      "Name:\tSigIgn: 5\nState:\tS (sleeping)\nVmSize:\t    24 "
      "kB\nSigIgn:\t0000000000001000\nEmpty:\n";
  EXPECT_EQ(status_value(kStatus, "State"), "S (sleeping)");
  EXPECT_EQ(status_value(kStatus, "VmSize"), "24 kB");
  EXPECT_EQ(status_value(kStatus, "SigIgn"), "0000000000001000") << "not that of the name";
  EXPECT_EQ(status_value(kStatus, "Empty"), "");
  EXPECT_EQ(status_value(kStatus, "Vm"), "");
  EXPECT_EQ(status_value("", "State"), "");
}

TEST(ProcessStatus, IsTheProcesss) {
  const auto status = process_status(::getpid());
  ASSERT_TRUE(status);
  EXPECT_EQ(status_value(*status, "Pid"), std::to_string(::getpid()));
  EXPECT_FALSE(process_status(-1));
}

}  // namespace
}  // namespace tailtrace
