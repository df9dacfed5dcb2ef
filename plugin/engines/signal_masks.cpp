#include "plugin/engines/signal_masks.h"

#include "decoder/base/bytes.h"
#include "decoder/base/process_status.h"

namespace tailtrace {

std::optional<SignalMasks> signal_masks(std::int32_t pid) {
  const auto status = process_status(pid);
  if (!status) return std::nullopt;
  return SignalMasks{parse_hex(status_value(*status, "SigCgt")).value_or(0),
                     parse_hex(status_value(*status, "SigIgn")).value_or(0)};
}

}  // namespace tailtrace
