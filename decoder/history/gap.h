// A gap: a stretch of a thread's execution that cannot be shown, and why.
//
// A gap takes one number in a history, as it does in GDB's, so that nobody can overlook it.
//
// Threading: values.
#pragma once

#include <string>
#include <string_view>

#include "decoder/base/types.h"

namespace tailtrace {

enum class GapReason : std::uint8_t {
  kNone,            // there is no gap
  kStart,           // the history begins: what came before is not held, which is no gap
  kNotRecorded,     // recording was off for a while
  kReplaced,        // the process executed another program
  kOverflow,        // the hardware lost data
  kOverwritten,     // the ring went round
  kTruncated,       // the kernel cut the buffer
  kLost,            // the kernel dropped data
  kPartial,         // the hardware could not trace all of it
  kCollision,       // the hardware lost data to other data of its own
  kNoCode,          // the bytes of an executed instruction are not known
  kNarrowCode,      // code of 32 or 16 bits, which histories do not show
  kBadInstruction,  // the bytes are known and are no instruction
  kBadTrace,        // the records contradict the code or each other
  kTooLong,         // a straight run longer than is believed
  kUnknown,         // the recorder lost data and did not say why
};

struct Gap {
  GapReason reason = GapReason::kNone;
  Address at;              // the instruction that could not be shown first; 0: unknown
  std::uint64_t lost = 0;  // instructions not shown; 0: unknown
  bool lost_more = false;  // there may be more of them than `lost`
};

// "no-code", "overflow", ...: a word for machines.
std::string_view reason_name(GapReason reason);

// One line for people, as "12 instructions not shown: the code at 0x401000 is not known".
std::string gap_text(const Gap& gap);

}  // namespace tailtrace
