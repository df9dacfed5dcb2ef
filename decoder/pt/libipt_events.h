// What libipt says, in the words of decoder.h.
//
// Threading: pure functions.
#pragma once

#include <intel-pt.h>

#include <optional>
#include <string_view>

#include "decoder/pt/decoder.h"

namespace tailtrace::pt {

CodeMode mode_from_libipt(pt_exec_mode mode);

// Nothing for events that decoder.h does not know (ticks).
std::optional<Event> event_from_libipt(const pt_event& event);

// REQUIRES: a negative status of libipt.
DecodeError error_from_libipt(int status);

// An error as libipt, and so ptxed, words it; ours for what libipt does not know.
std::string_view libipt_words(DecodeError error);

// The configuration for a trace; the trace must outlive it.
pt_config libipt_config(ByteSpan trace, const DecoderConfig& config);

}  // namespace tailtrace::pt
