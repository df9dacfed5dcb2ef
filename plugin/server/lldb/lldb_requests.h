// What LLDB's trace packets ask for, out of their JSON.
//
// Source: LLDB's document of its remote protocol extensions, jLLDBTraceStart and the packets
// behind it; what is absent may be there as `null`.
//
// Threading: pure functions; values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/base/result.h"

namespace tailtrace {

// No threads named: the process, with threads that are yet to come.
using LldbThreads = std::optional<std::vector<std::int32_t>>;

struct LldbTraceStart {
  LldbThreads threads;
  std::uint64_t trace_size_bytes = 0;  // of a thread
  bool times = false;
  std::optional<std::uint64_t> psb_period;           // a PSB each 2^(11 + N) bytes
  std::optional<std::uint64_t> process_limit_bytes;  // of all threads together
  bool per_cpu = false;
};

struct LldbTraceData {
  std::string kind;
  std::optional<std::int32_t> thread;
  std::optional<std::uint64_t> cpu;
};

// What LLDB's user is told instead of a trace.
inline tl::unexpected<Error> refuse(std::string what) {
  return fail(ErrorCode::kUsage, std::move(what));
}

// `text` is the JSON behind the packet's name, escapes undone. Errors: kBadInput when it is no such
// request; kUsage, in the words of LLDB's own server, for sizes that no trace can have.
Result<LldbTraceStart> parse_lldb_trace_start(std::string_view text);
Result<LldbThreads> parse_lldb_trace_stop(std::string_view text);
Result<void> parse_lldb_trace_state(std::string_view text);
Result<LldbTraceData> parse_lldb_trace_data(std::string_view text);

}  // namespace tailtrace
