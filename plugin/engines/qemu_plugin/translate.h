// Translation: qemu is about to run a piece of code for the first time, or again after it threw
// all translations away.
//
// Threading: translate() on any thread; forget_translations() while no vCPU runs.
#pragma once

#include "plugin/engines/qemu_plugin/qemu_api.h"

namespace tailtrace {

// Describes the block and has its executions recorded.
void translate(qemu_plugin_tb* tb);

// Descriptions of blocks begin anew.
void forget_translations();

}  // namespace tailtrace
