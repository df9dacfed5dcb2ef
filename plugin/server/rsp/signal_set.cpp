#include "plugin/server/rsp/signal_set.h"

#include <algorithm>

#include "decoder/base/bytes.h"

namespace tailtrace::rsp {

SignalSet parse_signals(std::string_view list) {
  SignalSet set;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(';'), list.size());
    const auto signal = parse_hex(list.substr(0, end));
    if (signal && *signal < set.size()) set.set(*signal);
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return set;
}

}  // namespace tailtrace::rsp
