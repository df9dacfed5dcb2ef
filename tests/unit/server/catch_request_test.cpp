#include "plugin/server/rsp/catch_request.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

namespace tailtrace {
namespace {

TEST(CatchRequest, NamesCalls) {
  auto request = rsp::parse_catch_request("QCatchSyscalls:1;b;27");
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->catches(SYS_munmap));
  EXPECT_TRUE(request->catches(SYS_getpid));
  EXPECT_FALSE(request->catches(SYS_read));
}

TEST(CatchRequest, WithoutNamesMeansAllButTheReturnFromAHandler) {
  auto request = rsp::parse_catch_request("QCatchSyscalls:1");
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->catches(SYS_read));
  EXPECT_FALSE(request->catches(SYS_rt_sigreturn));
  EXPECT_TRUE(rsp::parse_catch_request("QCatchSyscalls:1;f")->catches(SYS_rt_sigreturn));
}

TEST(CatchRequest, IsTakenBack) {
  auto request = rsp::parse_catch_request("QCatchSyscalls:0");
  ASSERT_TRUE(request);
  EXPECT_FALSE(request->catches(SYS_read));
  EXPECT_FALSE(rsp::parse_catch_request("QPassSignals:e"));
}

}  // namespace
}  // namespace tailtrace
