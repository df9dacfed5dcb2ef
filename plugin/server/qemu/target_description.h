// The registers of a program under qemu, described so that GDB knows them all for what they are.
//
// The description of qemu 7.2's stub names all of them core registers. GDB then takes the program
// for one without vector registers, and breaks down where it needs them (generate-core-file). It
// also lacks `orig_rax`, without which GDB takes a target for no Linux one and finds no shared
// libraries. Numbers and sizes are the stub's own, gdb-xml/i386-64bit.xml in qemu; `orig_rax` is
// added behind them.
//
// Threading: values.
#pragma once

#include <string>

namespace tailtrace {

// An XML document (GDB manual, "Target Descriptions").
std::string qemu_target_description();

// orig_rax, the number of the system call that is under way, comes behind the stub's registers in
// `g` and `G`.
constexpr std::size_t kOrigRax_digits = 16;

}  // namespace tailtrace
