// The threads of programs under qemu and their names, as the document of `qXfer:threads` (GDB's
// manual, "Thread List Format").
//
// Threading: pure functions, which look at the processes.
#pragma once

#include <span>
#include <string>

#include "plugin/server/qemu/qemu_inferior.h"

namespace tailtrace {

// As the program named it; the kernel has the emulator's name until then, which is not the
// program's.
std::string thread_name(const QemuInferior& inferior, ThreadId thread);

struct NamedThread {
  ThreadId thread;
  std::string name;
};
std::string thread_list(std::span<const NamedThread> threads);

}  // namespace tailtrace
