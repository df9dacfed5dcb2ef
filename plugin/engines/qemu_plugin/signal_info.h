// Signal info: what the program will find in the siginfo of a signal that it stops for, for the
// debugger. qemu 7.2's stub does not tell it.
//
// Signals that processes and the kernel send, and accesses to memory that fault, come to qemu as
// signals of the host, whose siginfo it hands on: its handler of them is called from ours, which
// keeps that. What instructions raise otherwise, qemu makes up of where the thread stands.
//
// Threading: on the thread that it is about.
#pragma once

#include <csignal>
#include <optional>

#include "plugin/engines/qemu_plugin/recorder.h"
#include "plugin/engines/qemu_plugin/signal_frame.h"

namespace tailtrace {

// Before qemu takes any signal. False: this qemu's calls cannot be taken.
bool keep_signal_infos();

// qemu's own handler of signals; null: it has none yet.
using HostHandler = void (*)(int, siginfo_t*, void*);
HostHandler qemu_signal_handler();

// Of the signal that the thread stops for, by the system's number; nothing: it is not known. It is
// taken: the next one of that number is another one.
std::optional<siginfo_t> take_signal_info(int signal);

// Has the handler find in the frame that was just read what the kernel tells of an access to what
// can be no address (SI_KERNEL). qemu 7.2 takes it for one to address 0, where nothing is mapped.
void mend_signal_info(Vcpu& vcpu, const SignalFrame& frame);

}  // namespace tailtrace
