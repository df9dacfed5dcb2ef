// What a hardware breakpoint is to watch, as the user names it: a variable, a function, an address
// of the program that is started.
//
// Threading: functions; they read files.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "decoder/base/result.h"
#include "plugin/engines/perf/breakpoints.h"
#include "plugin/provider/followed_program.h"

namespace tailtrace {

// The program, which stands at its first instruction.
struct WatchedProgram {
  std::int32_t pid = 0;
  // Lets it run until its libraries are mapped; called where a name is not that of its own file.
  std::function<Result<void>()> map_libraries;
  // What a function returns; empty where none can be called.
  std::function<Result<std::uint64_t>(Address)> result_of = {};
};

WatchedProgram watched(FollowedProgram& program);

// Understood are NAME, NAME+OFFSET, MODULE+OFFSET where no NAME is so called, and *ADDRESS, each
// alone or with :SIZE behind it, and FILE:LINE. A function, and an address alone, is watched for
// being executed; a variable, and whatever has a size, for being written, or with `reads` for being
// read or written. A variable has the size that the symbol table says. Names are those of
// symbols_named(), MODULE`NAME is one of that file alone; of an indirect function it is the one
// that is chosen. Errors: kUsage: there is no such name, or no debug register can watch so much.
Result<perf::BreakpointSpec> resolve_watch(const std::string& text, const WatchedProgram& program,
                                           bool reads);

// The file that a MODULE`NAME is of while it is not mapped: the program may load it later. Empty:
// there is none to wait for.
Result<std::string> awaited_module(const std::string& text, const WatchedProgram& program);
// What is to be said of such a place when the program ends without having loaded it.
Error never_loaded(const std::string& text);

// The address filter with which Intel PT records nothing but a place, as the kernel takes it: a
// function, or whatever has a size. Errors: as resolve_watch; kUsage when its size is not known, or
// it belongs to no file.
Result<std::string> resolve_filter(const std::string& text, const WatchedProgram& program);

// Whether there are no more of them than a thread has registers. Errors: kUsage.
Result<void> check_watches(const std::vector<std::string>& places);

}  // namespace tailtrace
