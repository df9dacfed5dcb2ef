// Thread ids as packets write them: `pPID.TID`, `pPID`, `TID`, `-1` for all and `0` for any.
//
// Threading: values, no shared state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "decoder/base/types.h"

namespace tailtrace::rsp {

struct ThreadSelector {
  static constexpr std::int32_t kAll = -1;
  static constexpr std::int32_t kAny = 0;

  std::int32_t pid = kAll;
  std::int32_t tid = kAll;

  friend bool operator==(ThreadSelector, ThreadSelector) = default;

  // One thread, and which: a process without a number is not known here.
  bool is_thread() const { return pid > 0 && tid > 0; }
  ThreadId thread() const { return {pid, tid}; }
  // kAny counts as all: it leaves the choice to us.
  bool matches(ThreadId id) const {
    return (pid <= 0 || pid == id.pid) && (tid <= 0 || tid == id.tid);
  }
};

// All of `text`; nothing when it is not of one of the forms. Without multiprocess extensions the
// process is kAny.
std::optional<ThreadSelector> parse_thread(std::string_view text);

// With multiprocess extensions `pPID.TID`, without them `TID`.
std::string format_thread(ThreadId id, bool multiprocess = true);

}  // namespace tailtrace::rsp
