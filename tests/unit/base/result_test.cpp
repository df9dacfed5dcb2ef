#include "decoder/base/result.h"

#include <gtest/gtest.h>

namespace tailtrace {
namespace {

TEST(Error, HasOneShapeOnEveryFace) {
  Error error{ErrorCode::kPermission, "cannot trace thread 4211", "kernel.perf_event_paranoid is 4",
              "sudo sysctl kernel.perf_event_paranoid=2", "tailtrace run --engine=qemu"};
  EXPECT_EQ(error.to_string(),
            "error: cannot trace thread 4211\n"
            "  why:  kernel.perf_event_paranoid is 4\n"
            "  fix:  sudo sysctl kernel.perf_event_paranoid=2\n"
            "  now:  tailtrace run --engine=qemu");
  EXPECT_EQ(error.to_line(),
            "cannot trace thread 4211: kernel.perf_event_paranoid is 4; "
            "fix: sudo sysctl kernel.perf_event_paranoid=2");
}

TEST(Error, LeavesOutWhatIsNotKnown) {
  Error error{ErrorCode::kUsage, "no", {}, {}, {}};
  EXPECT_EQ(error.to_string(), "error: no");
  EXPECT_EQ(error.to_line(), "no");
  error.fix = "yes";
  EXPECT_EQ(error.to_string(), "error: no\n  fix:  yes");
  EXPECT_EQ(error.to_line(), "no; fix: yes");
}

TEST(Error, OfASystemCallSaysWhatTheSystemSays) {
  struct Case {
    int number;
    ErrorCode code;
    const char* why;
  };
  for (const Case& c : {Case{EPERM, ErrorCode::kPermission, "Operation not permitted"},
                        Case{EACCES, ErrorCode::kPermission, "Permission denied"},
                        Case{ESRCH, ErrorCode::kGone, "No such process"},
                        Case{EPIPE, ErrorCode::kGone, "Broken pipe"},
                        Case{ECONNRESET, ErrorCode::kGone, "Connection reset by peer"},
                        Case{ENOSPC, ErrorCode::kSystem, "No space left on device"}}) {
    Error error = system_error("cannot do it", c.number);
    EXPECT_EQ(error.code, c.code) << c.why;
    EXPECT_EQ(error.why, c.why);
    EXPECT_EQ(error.what, "cannot do it");
  }
  errno = ENOENT;
  EXPECT_EQ(system_error("x").why, "No such file or directory");
}

TEST(Error, OfASystemCallSaysWhatHelpsWhateverWasToBeDone) {
  for (auto [number, fix] : {std::pair{EACCES, "ls -ld"},
                             {EROFS, "can be written to"},
                             {ENOSPC, "another disk"},
                             {EDQUOT, "quota"},
                             {EFBIG, "ulimit -f"},
                             {ENOMEM, "ulimit -v"},
                             {EMFILE, "ulimit -n"},
                             {ENFILE, "file-max"},
                             {EISDIR, "not a folder"},
                             {ENOTDIR, "through folders"},
                             {ENAMETOOLONG, "shorter"},
                             {ENOEXEC, "#!"}})
    EXPECT_NE(system_error("x", number).fix.find(fix), std::string::npos) << number;
  EXPECT_EQ(system_error("x", EIO).fix, "");
}

TEST(Result, IsAValueOrAnError) {
  auto half = [](int n) -> Result<int> {
    if (n % 2 != 0) return fail(ErrorCode::kNegative, "odd", "it is " + std::to_string(n));
    return n / 2;
  };
  EXPECT_EQ(half(4).value(), 2);
  ASSERT_FALSE(half(3));
  EXPECT_EQ(half(3).error().why, "it is 3");
  EXPECT_EQ(static_cast<int>(half(3).error().code), 1);
}

}  // namespace
}  // namespace tailtrace
