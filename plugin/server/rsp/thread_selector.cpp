#include "plugin/server/rsp/thread_selector.h"

#include <fmt/core.h>

#include <limits>

#include "decoder/base/bytes.h"

namespace tailtrace::rsp {
namespace {

std::optional<std::int32_t> parse_number(std::string_view text) {
  if (text == "-1") return ThreadSelector::kAll;
  auto value = parse_hex(text);
  if (!value || *value > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return static_cast<std::int32_t>(*value);
}

}  // namespace

std::optional<ThreadSelector> parse_thread(std::string_view text) {
  ThreadSelector selector;
  if (text.empty() || text.front() != 'p') {
    auto tid = parse_number(text);
    if (!tid) return std::nullopt;
    selector.pid = *tid == ThreadSelector::kAll ? ThreadSelector::kAll : ThreadSelector::kAny;
    selector.tid = *tid;
    return selector;
  }
  text.remove_prefix(1);
  std::size_t dot = text.find('.');
  auto pid = parse_number(text.substr(0, dot));
  if (!pid) return std::nullopt;
  selector.pid = *pid;
  if (dot == std::string_view::npos) return selector;
  auto tid = parse_number(text.substr(dot + 1));
  if (!tid) return std::nullopt;
  selector.tid = *tid;
  return selector;
}

std::string format_thread(ThreadId id, bool multiprocess) {
  return multiprocess ? fmt::format("p{:x}.{:x}", id.pid, id.tid) : fmt::format("{:x}", id.tid);
}

}  // namespace tailtrace::rsp
