// A program recorded to its end without a debugger, under qemu: `tailtrace run --no-debugger`.
//
// Threading: one thread; waits for the program.
#pragma once

#include <cstdio>

#include "decoder/base/result.h"
#include "plugin/server/below/server_options.h"

namespace tailtrace {

// Runs the program of `options` under the qemu engine and leaves the recording behind: in
// `keep_folder`, or else in a new folder under $XDG_STATE_HOME/tailtrace; says on `err` where.
// Returns the program's exit status, 128 + N if signal N ended it.
// Errors: those of QemuProcess::launch; kUsage for an engine that needs a debugger.
Result<int> record_to_end(const ServeOptions& options, std::FILE* err);

// A folder for recordings of a program that does not exist yet:
// $XDG_STATE_HOME/tailtrace/PROGRAM.N. Errors: kUsage when neither that nor HOME is set.
Result<std::string> free_recording_folder(const std::string& program);

}  // namespace tailtrace
