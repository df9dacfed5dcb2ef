// The threads of programs under qemu and their names, as the document of `qXfer:threads` (GDB's
// manual, "Thread List Format").
//
// Threading: pure functions.
#pragma once

#include <span>
#include <string>

#include "decoder/base/types.h"

namespace tailtrace {

struct NamedThread {
  ThreadId thread;
  std::string name;
};
std::string thread_list(std::span<const NamedThread> threads);

}  // namespace tailtrace
