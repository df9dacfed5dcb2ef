// Result<T> is a value or an Error. An Error is a value too: it says what failed, why (as measured,
// not guessed), how to fix it and what works meanwhile, so that every face shows the same text.
//
// The library reports all failures of its surroundings and of its input this way; it never prints,
// exits or throws across its boundary. Programming errors are asserts.
//
// Threading: values, no shared state.
#pragma once

#include <cerrno>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace tailtrace {

// The class of a failure. The number is the exit status of the command line.
enum class ErrorCode : int {
  kNegative = 1,    // the answer is "no" or "different"
  kUsage = 2,       // arguments that cannot be used
  kNoEngine = 3,    // nothing on this machine can record what was asked
  kPermission = 4,  // the system refused
  kBadInput = 5,    // a file, packet or document that cannot be understood
  kGaps = 6,        // the history has gaps and strictness was asked for
  kSystem = 7,      // a system call failed
  kGone = 8,        // the process, thread or peer is no longer there
};

struct Error {
  ErrorCode code = ErrorCode::kSystem;
  std::string what;  // what could not be done: one line, no full stop
  std::string why;   // the measured cause; may be empty
  std::string fix;   // what the user can do; may be empty
  std::string now;   // what works without the fix; may be empty

  // The one shape in which every face shows an error:
  //   error: WHAT
  //     why:  WHY
  //     fix:  FIX
  //     now:  NOW
  // Empty parts are left out. No line feed at the end.
  std::string to_string() const;

  // The same on one line, for protocols that carry one: "WHAT: WHY; fix: FIX".
  std::string to_line() const;
};

template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
  // NOLINTNEXTLINE(google-explicit-constructor): a Result is its base with an attribute.
  Result(tl::expected<T, Error>&& base) : tl::expected<T, Error>(std::move(base)) {}
};

inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

inline tl::unexpected<Error> fail(ErrorCode code, std::string what, std::string why = {},
                                  std::string fix = {}, std::string now = {}) {
  return fail(Error{code, std::move(what), std::move(why), std::move(fix), std::move(now)});
}

// An Error of a failed system call: the code follows from errno, `why` is its text, and `fix` what
// helps against that number whatever was to be done, if anything does.
Error system_error(std::string what, int error_number = errno);

}  // namespace tailtrace
