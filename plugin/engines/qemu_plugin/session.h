// The session's folder as the processes in it keep it: bounded, and honest about what is missing.
//
// Threading: any number of processes at the same time.
#pragma once

#include <string>

namespace tailtrace {

// Deletes the oldest folders of ended processes when there are too many; each counts as missing.
void make_room_for_one(const std::string& session);

// One more process has no recording in the session.
void note_missing(const std::string& session);

// Deletes a process's folder and the files in it.
void remove_folder(const std::string& folder);

}  // namespace tailtrace
