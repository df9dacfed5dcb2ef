// How the library in gdbserver tells us of threads that a program makes: on a stream socket, each
// thread's number as an int32; the thread has not run yet, and does not before one byte came back.
#pragma once

namespace tailtrace {

// The environment variable that has the descriptor's number.
constexpr const char* kNewThreadsVariable = "TAILTRACE_NEW_THREADS";

}  // namespace tailtrace
