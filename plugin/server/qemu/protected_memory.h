// Memory that a program under qemu may not write to itself, its code above all. gdbserver writes
// there for a debugger; qemu's stub refuses. LLDB calls functions by code that it writes there, and
// does not look at the answer.
//
// Threading: one thread at a time.
#pragma once

#include <string>
#include <string_view>

#include "plugin/server/qemu/qemu_inferior.h"

namespace tailtrace {

// The answer to `MADDRESS,LENGTH:BYTES` that the stub of a stopped program has refused: `OK` when
// the bytes are there now. Errors: kGone.
Result<std::string> write_protected(QemuInferior& inferior, ThreadId thread,
                                    std::string_view request);

}  // namespace tailtrace
