// Threads of the recorded program: made, begun, ended.
//
// Threading: each function says on which thread it runs.
#pragma once

#include <cstdint>

#include "decoder/record/ring_format.h"

namespace tailtrace {

// A vCPU was made: for the main thread on that thread, for others on their parent.
void make_thread(std::uint32_t cpu);

// The thread executes its first block; on the thread itself.
void begin_thread(std::uint32_t cpu);

// Whether begin_thread() was called on this thread.
bool has_begun();

// The thread made by the last make_thread() of this thread has this number; on the parent.
void name_made_thread(std::int32_t tid);

// The thread ends; on the thread itself.
void end_thread(std::uint32_t cpu);

// The process ends, or another program takes its place (or did not: back to kRunning); on the
// thread that did it.
void end_process(RingState state);

}  // namespace tailtrace
