// Callback arrays: where qemu keeps the callbacks behind accesses to memory that its helpers make.
//
// qemu 7.2 forgets to take the array of an instruction away from the thread where that instruction
// ends its block (plugin_gen_disable_mem_helpers in accel/tcg/plugin-gen.c). The thread may keep it
// for long, and the next helper in code without callbacks walks it: after the array was freed with
// the translations, which ends the program. So none is freed: they are emptied, and used again.
//
// Threading: any thread; keep_callback_arrays() before there are threads.
#pragma once

namespace tailtrace {

// Nothing where this qemu's calls cannot be taken.
void keep_callback_arrays();

}  // namespace tailtrace
