// Traces that a processor could have sent of a made-up program: every packet in every place where
// it may stand, with the events that are bound to an address, far transfers that change the mode,
// pauses, losses, transactions, PSBs and timing packets in between.
//
// Threading: pure.
#pragma once

#include "decoder/base/bytes.h"
#include "decoder/pt/decoder.h"
#include "tests/support/legal_program.h"

namespace tailtrace::pt {

// Ends when the choices do. On processors with errata nothing is sent that they make ambiguous.
Bytes make_legal_trace(Choices& choices, const LegalProgram& program, const Errata& errata);

}  // namespace tailtrace::pt
