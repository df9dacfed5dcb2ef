#include "decoder/base/result.h"

#include <system_error>

#include "decoder/base/text.h"

namespace tailtrace {

std::string Error::to_string() const {
  std::string text = "error: " + printable(what);
  if (!why.empty()) text += "\n  why:  " + printable(why);
  if (!fix.empty()) text += "\n  fix:  " + printable(fix);
  if (!now.empty()) text += "\n  now:  " + printable(now);
  return text;
}

std::string Error::to_line() const {
  std::string text = what;
  if (!why.empty()) text += ": " + why;
  if (!fix.empty()) text += "; fix: " + fix;
  return printable(text);
}

namespace {

// What helps against a failure whatever was to be done; nothing where that depends on it.
const char* usual_fix(int error_number) {
  switch (error_number) {
    case EACCES:
      return "do it as a user who has the right to it (ls -ld shows who has), or name another "
             "place";
    case EROFS:
      return "name a place that can be written to";
    case ENOSPC:
      return "make room there, or name a place on another disk";
    case EDQUOT:
      return "make room within your quota, or name a place on another disk";
    case EFBIG:
      return "raise the limit of file sizes (ulimit -f)";
    case ENOMEM:
      return "free some memory, or raise the limit of it (ulimit -v)";
    case EMFILE:
      return "raise the limit of open files (ulimit -n 65536)";
    case ENFILE:
      return "let the system have more open files (sysctl fs.file-max)";
    case EISDIR:
      return "name a file, not a folder";
    case ENOTDIR:
      return "name a path that leads through folders only";
    case ENAMETOOLONG:
      return "take a shorter path";
    case ENOEXEC:
      return "name a program of this machine, or a script that begins with #!";
    default:
      return "";
  }
}

}  // namespace

Error system_error(std::string what, int error_number) {
  ErrorCode code = ErrorCode::kSystem;
  if (error_number == EPERM || error_number == EACCES) code = ErrorCode::kPermission;
  if (error_number == ESRCH || error_number == EPIPE || error_number == ECONNRESET)
    code = ErrorCode::kGone;
  return Error{code,
               std::move(what),
               std::generic_category().message(error_number),
               usual_fix(error_number),
               {}};
}

}  // namespace tailtrace
