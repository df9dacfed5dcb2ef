// The command line, run by LLDB's plugin in a process of its own: whatever a recording holds, LLDB
// lives on, its memory is given back, and Ctrl-C ends a long answer.
//
// Threading: on LLDB's thread, for the time of one command.
#pragma once

#include <lldb/API/LLDB.h>

#include <filesystem>
#include <string>
#include <vector>

#include "decoder/base/result.h"

namespace tailtrace::lldb_plugin {

// Where this plugin is, as it was built or installed; empty when nobody knows.
std::filesystem::path plugin_folder();

// The program that is asked: near this plugin; else whatever PATH has.
std::string program_path();

struct Answer {
  int status = 0;  // of the program, as its manual has it
  std::string out, err;
};

// Runs `tailtrace ARGS`, with LLDB's own display of progress. Errors: kSystem when it cannot be
// run, or says more than 256 MiB; kGone when the user has interrupted it.
Result<Answer> run_tailtrace(lldb::SBDebugger& debugger, const std::vector<std::string>& args);

}  // namespace tailtrace::lldb_plugin
