// The process's folder in the session, made when qemu starts and when the program forks.
//
// Threading: on the process's only thread.
#pragma once

#include "plugin/engines/qemu_plugin/qemu_api.h"
#include "plugin/engines/qemu_plugin/recorder.h"

namespace tailtrace {

// False: the reason is in the session's file kRefusalName.
bool begin_process(const RecorderOptions& options, const qemu_info_t& info);

// Why a qemu cannot be worked with: one sentence; empty when it can.
std::string objection_to(const qemu_info_t& info);

}  // namespace tailtrace
