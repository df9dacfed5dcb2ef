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

Error system_error(std::string what, int error_number) {
  ErrorCode code = ErrorCode::kSystem;
  if (error_number == EPERM || error_number == EACCES) code = ErrorCode::kPermission;
  if (error_number == ESRCH || error_number == EPIPE || error_number == ECONNRESET)
    code = ErrorCode::kGone;
  return Error{code, std::move(what), std::generic_category().message(error_number), {}, {}};
}

}  // namespace tailtrace
