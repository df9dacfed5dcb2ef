// Traces made to defeat a decoder that remembers: code and outcomes that never come again, and
// synchronisation points as often as a processor makes them. All of them are sound.
//
// Threading: pure functions; the same traces everywhere.
#pragma once

#include <string>
#include <vector>

#include "tests/support/pt_inputs.h"

namespace tailtrace::pt {

// Their code is written into files in `folder` for decoders that read files. `branches`: how many
// each has.
Result<std::vector<PtInput>> adversarial_traces(const std::string& folder, std::uint64_t branches);

}  // namespace tailtrace::pt
