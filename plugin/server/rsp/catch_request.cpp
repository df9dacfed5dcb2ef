#include "plugin/server/rsp/catch_request.h"

#include <sys/syscall.h>

#include "decoder/base/bytes.h"

namespace tailtrace::rsp {

bool CatchRequest::catches(std::uint64_t number) const {
  if (!is_on) return false;
  return numbers.empty() ? number != SYS_rt_sigreturn : numbers.contains(number);
}

std::optional<CatchRequest> parse_catch_request(std::string_view packet) {
  static constexpr std::string_view kCatch = "QCatchSyscalls:";
  if (!packet.starts_with(kCatch)) return std::nullopt;
  std::string_view rest = packet.substr(kCatch.size());
  CatchRequest request;
  request.is_on = rest.starts_with('1');
  if (!request.is_on) return request;
  rest.remove_prefix(1);
  while (rest.starts_with(';')) {
    rest.remove_prefix(1);
    const std::string_view digits = rest.substr(0, rest.find(';'));
    if (auto number = parse_hex(digits)) request.numbers.insert(*number);
    rest.remove_prefix(digits.size());
  }
  return request;
}

}  // namespace tailtrace::rsp
