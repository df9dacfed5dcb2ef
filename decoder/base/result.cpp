#include "decoder/base/result.h"

#include <system_error>

namespace tailtrace {

std::string Error::to_string() const {
  std::string text = "error: " + what;
  if (!why.empty()) text += "\n  why:  " + why;
  if (!fix.empty()) text += "\n  fix:  " + fix;
  if (!now.empty()) text += "\n  now:  " + now;
  return text;
}

std::string Error::to_line() const {
  std::string text = what;
  if (!why.empty()) text += ": " + why;
  if (!fix.empty()) text += "; fix: " + fix;
  return text;
}

Error system_error(std::string what, int error_number) {
  ErrorCode code = ErrorCode::kSystem;
  if (error_number == EPERM || error_number == EACCES) code = ErrorCode::kPermission;
  if (error_number == ESRCH || error_number == EPIPE || error_number == ECONNRESET)
    code = ErrorCode::kGone;
  return Error{code, std::move(what), std::generic_category().message(error_number), {}, {}};
}

}  // namespace tailtrace
