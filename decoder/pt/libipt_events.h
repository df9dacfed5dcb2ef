// What libipt says, in the words of decoder.h.
//
// Threading: pure functions.
#pragma once

#include <intel-pt.h>

#include <optional>

#include "decoder/pt/decoder.h"

namespace tailtrace::pt {

CodeMode mode_from_libipt(pt_exec_mode mode);

// Nothing for events that decoder.h does not know (ticks).
std::optional<Event> event_from_libipt(const pt_event& event);

// REQUIRES: a negative status of libipt.
DecodeError error_from_libipt(int status);

// The configuration for a trace; the trace must outlive it.
pt_config libipt_config(ByteSpan trace, const DecoderConfig& config);

}  // namespace tailtrace::pt
