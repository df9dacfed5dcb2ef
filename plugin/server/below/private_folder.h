// The folder that a run of ours needs beside a session's: for sockets, and rings of steps.
//
// Threading: function without state.
#pragma once

#include "decoder/base/own_folder.h"

namespace tailtrace {

// In the user's runtime folder, which is in memory, or where temporary files go.
Result<OwnFolder> make_private_folder();

}  // namespace tailtrace
