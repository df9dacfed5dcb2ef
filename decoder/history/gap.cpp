#include "decoder/history/gap.h"

#include <fmt/format.h>

namespace tailtrace {
namespace {

std::string reason_text(const Gap& gap) {
  switch (gap.reason) {
    case GapReason::kNone:
      return "nothing is missing";
    case GapReason::kStart:
      return "the history begins here";
    case GapReason::kNotRecorded:
      return "recording was off";
    case GapReason::kReplaced:
      return "the process executed another program";
    case GapReason::kOverflow:
      return "the hardware lost data (overflow)";
    case GapReason::kOverwritten:
      return "the ring went round (overwritten)";
    case GapReason::kTruncated:
      return "the kernel cut the buffer (truncated)";
    case GapReason::kLost:
      return "the kernel dropped data (lost)";
    case GapReason::kPartial:
      return "the hardware could not trace all of it (partial)";
    case GapReason::kCollision:
      return "the hardware lost data to other data of its own (collision)";
    case GapReason::kNoCode:
      return fmt::format("the code at {:#x} is not known", gap.at.value);
    case GapReason::kNarrowCode:
      return fmt::format(
          "the code at {:#x} is of 32 or 16 bits, which tailtrace decode shows, histories do not",
          gap.at.value);
    case GapReason::kBadInstruction:
      return fmt::format("the bytes at {:#x} are no instruction", gap.at.value);
    case GapReason::kBadTrace:
      return gap.at.is_null()
                 ? "the records contradict each other"
                 : fmt::format("the records contradict the code at {:#x}", gap.at.value);
    case GapReason::kTooLong:
      return fmt::format("the straight run at {:#x} is too long to be believed", gap.at.value);
    case GapReason::kUnknown:
      break;
  }
  return "the recorder lost data and does not say why";
}

}  // namespace

std::string_view reason_name(GapReason reason) {
  switch (reason) {
    case GapReason::kNone:
      return "none";
    case GapReason::kStart:
      return "start";
    case GapReason::kNotRecorded:
      return "not-recorded";
    case GapReason::kReplaced:
      return "replaced";
    case GapReason::kOverflow:
      return "overflow";
    case GapReason::kOverwritten:
      return "overwritten";
    case GapReason::kTruncated:
      return "truncated";
    case GapReason::kLost:
      return "lost";
    case GapReason::kPartial:
      return "partial";
    case GapReason::kCollision:
      return "collision";
    case GapReason::kNoCode:
      return "no-code";
    case GapReason::kNarrowCode:
      return "narrow-code";
    case GapReason::kBadInstruction:
      return "bad-instruction";
    case GapReason::kBadTrace:
      return "bad-trace";
    case GapReason::kTooLong:
      return "too-long";
    case GapReason::kUnknown:
      break;
  }
  return "unknown";
}

std::string gap_text(const Gap& gap) {
  std::string why = reason_text(gap);
  if (gap.lost == 0) return why;
  return fmt::format("{}{} instruction{} not shown: {}", gap.lost_more ? "at least " : "", gap.lost,
                     gap.lost == 1 ? "" : "s", why);
}

}  // namespace tailtrace
