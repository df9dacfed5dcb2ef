// What makes long answers short: a debugger takes each byte of a packet by itself.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace tailtrace::rsp {

// As zlib packs it (RFC 1950), for speed.
std::string pack(std::string_view plain);

}  // namespace tailtrace::rsp
