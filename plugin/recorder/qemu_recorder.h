// The always-on recorder of a program that it starts under qemu: for machines without tracing
// hardware. qemu's stub tells of each signal before the program gets it; a program that handles it
// goes on, and what was put together for it is dropped.
//
// Threading: one thread; waits until the program's end.
#pragma once

#include "plugin/engines/qemu/qemu_process.h"
#include "plugin/recorder/flight.h"

namespace tailtrace {

// The recording itself lies in the folder that `qemu` names while the program runs: whatever ends
// the recorder, it stays there. Errors: as QemuProcess::launch; kUsage for what debug registers
// would have to see; no bundle could be written.
Result<FlightEnd> record_in_qemu(QemuOptions qemu, const FlightPlan& plan);

}  // namespace tailtrace
