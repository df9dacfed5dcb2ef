// What lets a debugger interrupt the program at any moment. qemu's stub waits for the debugger in
// a read that a signal of the host's ends, and takes that for the end of the connection (qemu 7.2,
// gdb_handlesig): an interrupt that comes just as the program stops would cut the debugger off and
// end the program.
//
// Threading: any thread.
#pragma once

namespace tailtrace {

// From now on a SIGINT lets such a read go on; qemu reports it when the program is resumed. For
// programs that handle SIGINT themselves their own wish counts, as qemu has it.
// REQUIRES: qemu handles signals already, as it does once code is translated.
void let_interrupted_reads_go_on();

}  // namespace tailtrace
