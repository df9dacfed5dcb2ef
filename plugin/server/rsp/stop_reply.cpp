#include "plugin/server/rsp/stop_reply.h"

#include <bit>
#include <limits>

#include "decoder/base/bytes.h"

namespace tailtrace::rsp {
namespace {

// The pc of x86-64's target descriptions.
constexpr std::string_view kPcRegister = "10";
constexpr std::uint8_t kTrap = 5;  // SIGTRAP, to everybody

// A register of 8 bytes in the target's order, which is little-endian.
std::optional<Address> parse_register(std::string_view digits) {
  if (digits.size() != 16) return std::nullopt;
  auto value = parse_hex(digits);
  if (!value) return std::nullopt;
  return Address{__builtin_bswap64(*value)};
}

std::uint16_t reason_of(std::string_view key) {
  switch (key.size()) {
    case 4:
      if (key == "fork") return StopReply::kFork;
      if (key == "exec") return StopReply::kExec;
      break;
    case 5:
      if (key == "watch") return StopReply::kWatch;
      if (key == "vfork") return StopReply::kVfork;
      break;
    case 6:
      if (key == "rwatch" || key == "awatch") return StopReply::kWatch;
      if (key == "create") return StopReply::kThreadCreated;
      break;
    case 7:
      if (key == "swbreak") return StopReply::kSwBreak;
      if (key == "hwbreak") return StopReply::kHwBreak;
      if (key == "library") return StopReply::kLibrary;
      break;
    default:
      if (key == "vforkdone") return StopReply::kVforkDone;
      if (key == "syscall_entry" || key == "syscall_return") return StopReply::kSystemCall;
      if (key == "replaylog") return StopReply::kOther;
  }
  return 0;
}

// The reasons that lldb-server names. A signal that is a trap was sent; a trace is a finished step.
std::uint16_t named_reason(std::string_view name, std::uint8_t signal) {
  if (name == "breakpoint") return StopReply::kSwBreak;
  if (name == "watchpoint") return StopReply::kWatch;
  if (name == "exec") return StopReply::kExec;
  if (name == "fork") return StopReply::kFork;
  if (name == "vfork") return StopReply::kVfork;
  if (name == "vforkdone") return StopReply::kVforkDone;
  bool is_plain = name == "trace" || (name == "signal" && signal != kTrap);
  return is_plain ? 0 : StopReply::kOther;
}

void take_pair(StopReply& reply, std::string_view key, std::string_view value) {
  if (key == kPcRegister) {
    reply.pc = parse_register(value);
  } else if (key == "thread") {
    reply.thread = parse_thread(value);
  } else if (key == "reason") {
    reply.reasons |= named_reason(value, reply.signal);
  } else if (key == "threads") {
    reply.threads = value;
  } else if (key == "thread-pcs") {
    reply.thread_pcs = value;
  } else if (key == "jstopinfo") {
    reply.stop_infos = value;
  } else if (!key.empty() && !(key.size() <= 4 && parse_hex(key))) {
    std::uint16_t reason = reason_of(key);
    reply.reasons |= reason;
    if ((reason & (StopReply::kFork | StopReply::kVfork)) != 0) reply.child = parse_thread(value);
  }
}

// `key:value;key:value;`
void take_pairs(StopReply& reply, std::string_view pairs) {
  while (!pairs.empty()) {
    std::size_t end = pairs.find(';');
    std::string_view pair = pairs.substr(0, end);
    std::size_t colon = pair.find(':');
    if (colon != std::string_view::npos)
      take_pair(reply, pair.substr(0, colon), pair.substr(colon + 1));
    if (end == std::string_view::npos) return;
    pairs.remove_prefix(end + 1);
  }
}

// `AA` or `AA;process:PID`
bool take_exit(StopReply& reply, std::string_view rest) {
  static constexpr std::string_view kProcess = "process:";
  std::size_t end = rest.find(';');
  auto status = parse_hex(rest.substr(0, end));
  if (!status) return false;
  reply.signal = static_cast<std::uint8_t>(*status);
  if (end == std::string_view::npos) return true;
  rest.remove_prefix(end + 1);
  if (!rest.starts_with(kProcess)) return true;
  auto pid = parse_hex(rest.substr(kProcess.size()));
  if (pid && *pid <= std::numeric_limits<std::int32_t>::max())
    reply.process = static_cast<std::int32_t>(*pid);
  return true;
}

}  // namespace

std::optional<StopReply> parse_stop_reply(std::string_view payload) {
  if (payload.empty()) return std::nullopt;
  StopReply reply;
  std::string_view rest = payload.substr(1);
  switch (payload.front()) {
    case 'T':
    case 'S': {
      auto signal = parse_hex(rest.substr(0, 2));
      if (rest.size() < 2 || !signal) return std::nullopt;
      reply.signal = static_cast<std::uint8_t>(*signal);
      if (payload.front() == 'T') take_pairs(reply, rest.substr(2));
      return reply;
    }
    case 'W':
    case 'X':
      reply.kind = payload.front() == 'W' ? StopReply::Kind::kExited : StopReply::Kind::kKilled;
      if (!take_exit(reply, rest)) return std::nullopt;
      return reply;
    case 'w': {
      reply.kind = StopReply::Kind::kThreadExited;
      std::size_t end = rest.find(';');
      if (end == std::string_view::npos) return std::nullopt;
      reply.thread = parse_thread(rest.substr(end + 1));
      if (!reply.thread) return std::nullopt;
      return reply;
    }
    case 'N':
      if (!rest.empty()) return std::nullopt;
      reply.kind = StopReply::Kind::kNothingRuns;
      return reply;
    default:
      return std::nullopt;
  }
}

}  // namespace tailtrace::rsp
