// The request to stop at system calls: `QCatchSyscalls:1;NUMBER;...`, all without a number, or
// `QCatchSyscalls:0`.
//
// Threading: values, no shared state.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string_view>

namespace tailtrace::rsp {

struct CatchRequest {
  bool is_on = false;
  std::set<std::uint64_t> numbers;  // empty: all

  // The return from a handler is caught only by its own name: it does not come back behind itself,
  // and the history would have a gap.
  bool catches(std::uint64_t number) const;
};

// Nothing when it is another packet.
std::optional<CatchRequest> parse_catch_request(std::string_view packet);

}  // namespace tailtrace::rsp
