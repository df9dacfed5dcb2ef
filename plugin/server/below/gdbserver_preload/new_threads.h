// How the library in gdbserver, or lldb-server, tells us of threads that a program makes: on a
// stream socket, each thread's number as an int32; the thread has not run yet, and does not before
// one byte came back.
#pragma once

namespace tailtrace {

// The environment variable that has the descriptor's number, and what is behind that where the
// library is to do nothing else.
constexpr const char* kNewThreadsVariable = "TAILTRACE_NEW_THREADS";
constexpr char kNothingElse = '!';

}  // namespace tailtrace
