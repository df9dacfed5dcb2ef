#include "plugin/server/lldb_face.h"

#include <fmt/format.h>

#include <fstream>

#include "decoder/base/bytes.h"
#include "plugin/server/signals.h"

namespace tailtrace {
namespace {

constexpr std::string_view kTriple = "x86_64-pc-linux-gnu";
// LLDB's own patience with a packet is a second, and less than a program may take that is stepped.
constexpr int kPacketTimeout_s = 60;

// Replaces the two digits of a signal at `at`, if there are two.
void replace_signal(std::string& packet, std::size_t at, bool for_server) {
  if (packet.size() < at + 2) return;
  auto number = parse_hex(std::string_view(packet).substr(at, 2));
  if (!number) return;
  int other = for_server ? protocol_signal(static_cast<int>(*number))
                         : system_signal(static_cast<std::uint8_t>(*number));
  if (other != 0) packet.replace(at, 2, fmt::format("{:02x}", other));
}

// `vCont;C0a:p1.1;S0b:p1.2`
void replace_action_signals(std::string& packet) {
  for (std::size_t at = packet.find(';'); at != std::string::npos; at = packet.find(';', at + 1))
    if (at + 1 < packet.size() && (packet[at + 1] == 'C' || packet[at + 1] == 'S'))
      replace_signal(packet, at + 2, true);
}

// `QPassSignals:e;11`
std::string replace_listed_signals(std::string_view packet) {
  std::size_t colon = packet.find(':');
  std::string result(packet.substr(0, colon + 1));
  for (std::string_view list = packet.substr(colon + 1); !list.empty();) {
    std::size_t end = std::min(list.find(';'), list.size());
    auto number = parse_hex(list.substr(0, end));
    int signal = number && *number < 256 ? protocol_signal(static_cast<int>(*number)) : 0;
    if (signal != 0) result += fmt::format("{}{:x}", result.back() == ':' ? "" : ";", signal);
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return result;
}

struct Region {
  std::uint64_t begin = 0, end = 0;
  std::string permissions;  // empty: nothing is mapped
  std::string name;
};

// The mapping that holds the address, or the hole between two.
Region region_at(std::int32_t pid, std::uint64_t address) {
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  Region hole{0, ~0ull, {}, {}};
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0, end = 0;
    char access[5] = {};
    int name_at = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx %4s %*s %*s %*s %n", &begin, &end, access, &name_at) <
        3)
      continue;
    if (address < begin) {
      hole.end = begin;
      return hole;
    }
    hole.begin = end;
    if (address >= end) continue;
    Region region{begin, end, {}, line.substr(static_cast<std::size_t>(name_at))};
    for (char c : {access[0], access[1], access[2]})
      if (c != '-') region.permissions += c;
    return region;
  }
  return hole;
}

}  // namespace

void LldbFace::meet_debugger(std::string_view packet) {
  // GDB on x86 says `xmlRegisters=i386`; LLDB names all processors that it knows.
  is_lldb_ = packet.find("xmlRegisters=i386,") != std::string_view::npos;
}

void LldbFace::change_features(rsp::FeatureList& features) const {
  if (!is_lldb_) return;
  features.remove("qXfer:libraries-svr4:read");
  features.remove("augmented-libraries-svr4-read");
}

Result<std::string> LldbFace::request_for_server(std::string packet) {
  if (!is_lldb_) return packet;
  if (packet == "k") {
    auto thread = below_.debugger_thread();
    if (!thread) return fail(std::move(thread.error()));
    return *thread ? fmt::format("vKill;{:x}", (*thread)->pid) : packet;
  }
  if (packet.starts_with("vCont;")) {
    replace_action_signals(packet);
  } else if (packet.starts_with('C') || packet.starts_with('S')) {
    replace_signal(packet, 1, true);
  } else if (packet.starts_with("QPassSignals:")) {
    return replace_listed_signals(packet);
  }
  return packet;
}

std::string LldbFace::stop_for_debugger(std::string_view payload) const {
  std::string result(payload);
  if (is_lldb_ &&
      (payload.starts_with('T') || payload.starts_with('S') || payload.starts_with('X')))
    replace_signal(result, 1, false);
  return result;
}

std::string LldbFace::end_for_debugger(std::string_view request, std::string_view payload) const {
  if (is_lldb_ && request.starts_with("vKill;") && payload == "OK") return "X09";
  return std::string(payload);
}

Result<std::optional<std::string>> LldbFace::answer(std::string_view packet) {
  static constexpr std::string_view kRegion = "qMemoryRegionInfo:";
  if (!is_lldb_) return std::optional<std::string>();
  Result<std::string> answer;
  if (packet == "QEnableErrorStrings") {
    answer = "OK";
  } else if (packet == "qHostInfo") {
    answer = fmt::format("triple:{};ptrsize:8;endian:little;default_packet_timeout:{};",
                         to_hex(as_bytes(kTriple)), kPacketTimeout_s);
  } else if (packet == "qProcessInfo") {
    answer = process_info();
  } else if (packet.starts_with(kRegion) && is_local_) {
    answer = memory_region(packet.substr(kRegion.size()));
  } else {
    return std::optional<std::string>();
  }
  if (!answer) return fail(std::move(answer.error()));
  return std::optional(std::move(*answer));
}

Result<std::string> LldbFace::process_info() {
  auto thread = below_.debugger_thread();
  if (!thread) return fail(std::move(thread.error()));
  if (!*thread) return "E01";
  return fmt::format("pid:{:x};triple:{};ostype:linux;endian:little;ptrsize:8;", (*thread)->pid,
                     to_hex(as_bytes(kTriple)));
}

Result<std::string> LldbFace::memory_region(std::string_view digits) {
  auto thread = below_.debugger_thread();
  if (!thread) return fail(std::move(thread.error()));
  auto address = parse_hex(digits);
  if (!*thread || !address) return "E01";
  Region region = region_at((*thread)->pid, *address);
  std::string answer =
      fmt::format("start:{:x};size:{:x};", region.begin, region.end - region.begin);
  if (!region.permissions.empty()) answer += "permissions:" + region.permissions + ";";
  if (!region.name.empty()) answer += "name:" + to_hex(as_bytes(region.name)) + ";";
  return answer;
}

}  // namespace tailtrace
