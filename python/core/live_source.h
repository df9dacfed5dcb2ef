// A thread's history as it was taken a moment ago, while its process is there.
//
// Threading: pure functions; they read /proc.
#pragma once

#include "decoder/history/snapshot.h"
#include "python/core/source.h"

namespace tailtrace::python {

// With the names of its thread and of its code as they are now.
ThreadSource live_source(ThreadSnapshot taken);

}  // namespace tailtrace::python
