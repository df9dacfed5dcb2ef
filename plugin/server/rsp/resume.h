// Requests to run: vCont with its actions, and the old single-letter packets.
//
// Threading: values, no shared state.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/base/types.h"
#include "plugin/server/rsp/thread_selector.h"

namespace tailtrace::rsp {

struct ResumeAction {
  enum class Kind { kContinue, kStep, kRangeStep, kStop };
  Kind kind = Kind::kContinue;
  std::optional<std::uint8_t> signal;  // of kContinue and kStep: delivered when it runs
  Address range_begin, range_end;      // of kRangeStep: steps while begin <= pc < end
  ThreadSelector selector;

  bool in_range(Address pc) const { return range_begin <= pc && pc < range_end; }
};

// The first action of a list that names a thread is the one that counts for it.
using ResumeActions = std::vector<ResumeAction>;

// Whether a packet asks the program to run, well-formed or not.
bool is_resume(std::string_view payload);

// Actions of `vCont;...`, or of `c`, `s`, `CXX`, `SXX` for the thread that Hc chose. Nothing when
// it is another packet, malformed, or names an address to go on at.
std::optional<ResumeActions> parse_resume(std::string_view payload, ThreadSelector chosen);

// Null when none applies: the thread stays as it is.
const ResumeAction* action_for(const ResumeActions& actions, ThreadId thread);

// The same with steps in the place of runs, for all threads of the processes.
ResumeActions in_steps(const ResumeActions& actions, const std::set<std::int32_t>& processes);

// `vCont;...`
std::string format_resume(const ResumeActions& actions, bool multiprocess = true);

}  // namespace tailtrace::rsp
