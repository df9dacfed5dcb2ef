// Tasks: the threads of a process and their names, as /proc shows them now.
//
// Threading: pure functions; they read /proc.
#pragma once

#include <string>
#include <vector>

#include "decoder/base/types.h"

namespace tailtrace {

// All threads that the process has; empty when it is gone. `root` is put in front of /proc.
std::vector<ThreadId> threads_of(const std::string& root, std::int32_t pid);

// Whether it has that thread.
bool is_thread_of(std::int32_t pid, std::int32_t tid);

// Whether none of its threads executes any more, or it is gone.
bool is_ending(std::int32_t pid);

// What /proc/PID/task/TID/stat says behind the name, from field 3 of proc(5) on: the state, ...
// Empty when the thread is gone.
std::vector<std::string> stat_behind_name(ThreadId thread);

// At most 15 characters; empty when the thread is gone.
std::string name_of(const std::string& root, ThreadId thread);

}  // namespace tailtrace
