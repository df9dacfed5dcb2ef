// Questions to a whole recording: the folder that `tailtrace open` named, else what is recorded of
// the process at hand, saved for the time of the question, or what LLDB has loaded, where that lies
// if it is known. The command line answers them, with its own options.
//
// Threading: on LLDB's thread, for the time of one command.
#pragma once

#include <string>
#include <vector>

#include "plugin/lldb/session.h"

namespace tailtrace::lldb_plugin {

using Words = std::vector<std::string>;

// Looks into a folder and stays with it until it is closed. Errors: as the command line has them
// for what is no recording.
Result<void> open_recording(Session& session, const std::string& path);
Result<void> close_recording(Session& session);
bool has_recording(Session& session);

// Prints what `tailtrace VERB RECORDING WORDS` says. Errors: its own.
Result<void> ask_recording(Session& session, const std::string& verb, const Words& words);
// The same as a text, instead of printing it.
Result<std::string> answer_of_recording(Session& session, const std::string& verb,
                                        const Words& words);

}  // namespace tailtrace::lldb_plugin
