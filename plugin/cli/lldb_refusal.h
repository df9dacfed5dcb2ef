// LldbRefusal: a session in which LLDB is told why there is none. LLDB throws away what a debug
// server prints; it shows its user the error that a request to start or attach is answered with.
//
// Threading: one thread; blocks.
#pragma once

#include "decoder/base/file.h"
#include "decoder/base/result.h"

namespace tailtrace {

// The answer to a packet of such a session.
std::string answer_of_refusal(std::string_view packet, const Error& error);

// Answers LLDB on a stream that it is connected to, until it hangs up.
void refuse_lldb(UniqueFd stream, const Error& error);

}  // namespace tailtrace
