// The places where a program under qemu is to stop: breakpoints, of which the stub knows, and
// watchpoints, which are the recorder's.
#include <fmt/core.h>

#include <algorithm>

#include "decoder/base/bytes.h"
#include "plugin/server/qemu/qemu_inferior.h"

namespace tailtrace {
namespace {

// More breakpoints than debuggers take away between two stops.
constexpr std::size_t kMaxRemoved = 4096;

// Of `Z2,addr,length` (stores) or `Z4,addr,length` (accesses).
std::optional<WatchedRange> watched_range(std::string_view request) {
  std::string_view rest = request.substr(3);
  const std::size_t comma = std::min(rest.find(','), rest.size());
  auto begin = parse_hex(rest.substr(0, comma));
  auto size = comma < rest.size() ? parse_hex(rest.substr(comma + 1)) : std::nullopt;
  if (!begin || !size || *size == 0 || *size > kMaxWatched_bytes) return std::nullopt;
  return WatchedRange{*begin, static_cast<std::uint32_t>(*size), request[1] == '4' ? 1u : 0u};
}

}  // namespace

bool QemuInferior::is_any_at(const Breakpoints& breakpoints, Address pc) {
  return std::any_of(breakpoints.begin(), breakpoints.end(),
                     [pc](const auto& entry) { return entry.second == pc; });
}

// The stub takes one in code wherever it is; where nothing is mapped, no other server does.
Result<bool> QemuInferior::has_room_for(std::string_view breakpoint, Address address) {
  if (!breakpoint.starts_with('0')) return true;
  auto byte = exchange(fmt::format("m{:x},1", address.value));
  if (!byte) return fail(std::move(byte.error()));
  return !byte->starts_with('E');
}

// Debuggers take breakpoints away at each stop, and to have one thread step over one, and set them
// again. So the stub is told at the next resume of all.
Result<std::string> QemuInferior::change_breakpoint(std::string_view request, Address address) {
  std::string_view what = request.substr(1);
  bool is_set = request[0] == 'Z';
  auto& from = is_set ? doomed_ : breakpoints_;
  if (auto known = from.find(what); known != from.end()) {
    (is_set ? breakpoints_ : doomed_).insert(from.extract(known));
    return std::string("OK");
  }
  if (is_set) {
    auto has_room = has_room_for(what, address);
    if (!has_room) return fail(std::move(has_room.error()));
    if (!*has_room) return std::string(rsp::kFailed);
  }
  auto answer = exchange(request);
  if (!is_set || !answer || *answer != "OK") return answer;
  breakpoints_.emplace(what, address);
  removed_.erase(address);
  return answer;
}

// The recorder has them; the stub knows of none.
std::string QemuInferior::change_watchpoint(std::string_view request) {
  auto range = watched_range(request);
  if (!range) return std::string(rsp::kFailed);
  if (request[0] == 'z') {
    watchpoints_.erase(std::string(request.substr(1)));
  } else {
    if (watchpoints_.size() == kMaxWatchedRanges) return std::string(rsp::kFailed);
    watchpoints_.emplace(request.substr(1), *range);
  }
  WatchedMemory watched{};
  for (const auto& [what, one] : watchpoints_) watched.ranges[watched.count++] = one;
  return std::string(engine_.set_watched(watched) ? "OK" : rsp::kFailed);
}

void QemuInferior::remove_doomed() {
  if (removed_.size() + doomed_.size() > kMaxRemoved) removed_.clear();
  for (const auto& [what, address] : doomed_) {
    // Should the stub be gone, the next look for an event finds out.
    (void)exchange("z" + what).has_value();
    if (!is_any_at(breakpoints_, address)) removed_.insert(address);
  }
  doomed_.clear();
}

}  // namespace tailtrace
