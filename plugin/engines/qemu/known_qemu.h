// The qemu that the recorder was made for. It relies on what the one stub of that version does and
// on version 1 of the plugin interface; Debian's later ones are built without plugins.
//
// Threading: constants.
#pragma once

namespace tailtrace {

// What is to be done where another one is found.
constexpr char kTakeKnownQemu[] =
    "install the qemu-user of Debian 12 (7.2), or name it with TAILTRACE_QEMU";

}  // namespace tailtrace
