// Pause seams: PSBs that come while tracing is off for a moment, between two instructions that
// follow each other:
//
//      ... | FUP X | TIP.PGD | PSB ... PSBEND | TIP.PGE X | ...
//
// The flow runs across them as across a PSB that comes while it is on, so a trace can be cut there.
// Producers that write for LLDB, as synthesis.h does, have no other PSBs.
//
// Threading: pure functions.
#pragma once

#include <optional>

#include "decoder/base/bytes.h"
#include "decoder/base/types.h"
#include "decoder/pt/packets/packet.h"

namespace tailtrace::pt {

// Whether a packet says nothing of the flow but its mode and time.
bool is_neutral(const Packet& packet);

// The instruction X, if the PSB there is a pause seam. The packets from the PSB before it on are
// looked at.
std::optional<Address> pause_at(ByteSpan trace, std::size_t psb);

}  // namespace tailtrace::pt
