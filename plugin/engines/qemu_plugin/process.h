// The process's folder in the session, made when qemu starts and when the program forks.
//
// Threading: on the process's only thread.
#pragma once

#include "plugin/engines/qemu_plugin/qemu_api.h"
#include "plugin/engines/qemu_plugin/recorder.h"

namespace tailtrace {

// False: the reason is in the session's file kRefusalName.
bool begin_process(const RecorderOptions& options, const qemu_info_t& info);

// The main thread is there: from now on readers see the folder. When the thread could not get a
// ring
// (`errno` says why), the first program of a session is not run at all; later ones run on.
void show_process(bool is_recorded);

// On the thread that forks, at its end in the child: the recording goes on in a folder of the
// child's own, with the parent's as its past. The parent's is not touched.
void continue_in_child();

// Has the forks of this process followed.
void follow_forks();

// Why a qemu cannot be worked with: one sentence; empty when it can.
std::string objection_to(const qemu_info_t& info);

}  // namespace tailtrace
