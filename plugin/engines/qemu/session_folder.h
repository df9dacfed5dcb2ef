// The folder of a session: where the recordings of one run are (decoder/record/RING.md).
//
// Threading: functions without state.
#pragma once

#include <string>
#include <vector>

#include "decoder/base/own_folder.h"
#include "decoder/base/result.h"

namespace tailtrace {

// Makes one in `parent`; if that is empty in $TAILTRACE_SESSIONS, else $XDG_RUNTIME_DIR, else
// /dev/shm, else /tmp. Errors: the folder cannot be made.
Result<OwnFolder> make_session_folder(const std::string& parent);

// Makes one with this path, and its parents, which stay if it does. Errors: it exists; it cannot be
// made.
Result<OwnFolder> make_session_folder_at(std::string path);

// The folders of the recorded processes of a session, PID.N each, in order of appearance.
Result<std::vector<std::string>> process_folders(const std::string& session);

// Keeps copies of the perf maps (decoder/symbols/JIT.md) of processes that have ended, which their
// numbers alone will not tell from those of later ones. Names are a help and no more: what cannot
// be kept is left alone.
void keep_perf_maps(const std::string& session);

// The folder of one process's program, whether or not it exists.
std::string process_folder_path(const std::string& session, int pid, unsigned program_index);

}  // namespace tailtrace
