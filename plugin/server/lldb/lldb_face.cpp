#include "plugin/server/lldb/lldb_face.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "decoder/base/bytes.h"
#include "decoder/code/maps_line.h"
#include "plugin/engines/protocol_signals.h"
#include "plugin/engines/tasks.h"
#include "plugin/server/lldb/fault_words.h"
#include "plugin/server/rsp/frame.h"
#include "plugin/server/rsp/stop_reply.h"

namespace tailtrace {
namespace {

constexpr std::string_view kTriple = "x86_64-pc-linux-gnu";
// LLDB's own patience with a packet is a second, and less than a program may take that is stepped.
constexpr int kPacketTimeout_s = 60;
constexpr std::string_view kExec = "T05exec:";
// The type of watchpoints that stop for loads and stores; the processor has none for loads alone.
constexpr char kWatchAccess = '4';
// In the description of the registers: by what LLDB finds thread-local variables, has no symbol
// behind the program counter twice, and knows the flags by its own name for them.
constexpr std::pair<std::string_view, std::string_view> kSaidOfRegisters[] = {
    {" name=\"fs_base\"", " generic=\"tp\""},
    {" name=\"rip\"", " format=\"hex\""},
    {" name=\"eflags\"", " altname=\"rflags\""},
};

struct Region {
  std::uint64_t begin = 0, end = 0;
  std::string permissions;  // empty: nothing is mapped
  std::string name;
};

// The mapping that holds the address, or the hole between two.
Region region_at(std::int32_t pid, std::uint64_t address) {
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  Region hole{0, ~0ull, {}, {}};
  for (std::string text; std::getline(maps, text);) {
    const std::optional<MapsLine> line = parse_maps_line(text);
    if (!line) continue;
    if (address < line->begin) {
      hole.end = line->begin;
      return hole;
    }
    hole.begin = line->end;
    if (address >= line->end) continue;
    Region region{line->begin, line->end, {}, std::string(line->name)};
    for (char c : line->access.substr(0, 3))
      if (c != '-') region.permissions += c;
    return region;
  }
  return hole;
}

// A stop reply that has the name of its thread: LLDB asks for that nowhere else, and forgets the
// one that it knew where there is none.
std::string with_name(std::string_view reply, const std::optional<rsp::ThreadSelector>& thread) {
  std::string named(reply);
  if (!thread || thread->tid <= 0 || reply.find("name:") != reply.npos) return named;
  const std::string name = name_of("", {thread->tid, thread->tid});
  return named + fmt::format("hexname:{};", to_hex(as_bytes(name)));
}

// `T05exec:FILE;thread:ID;`. Told of it in its own words, LLDB looks for the new program in /proc;
// of one that is not there itself it would find qemu, and forget all that it knows.
std::string exec_stop(std::string_view payload, bool is_local) {
  const std::size_t end = std::min(payload.find(';'), payload.size());
  const std::string_view rest = payload.substr(std::min(end + 1, payload.size()));
  if (is_local) return fmt::format("T05{}reason:exec;", rest);
  auto file = from_hex(payload.substr(kExec.size(), end - kExec.size()));
  const std::string told = fmt::format("exec of {}, LLDB still shows the program before",
                                       file ? as_text(*file) : "another program");
  return fmt::format("T05{}reason:exception;description:{};", rest, to_hex(as_bytes(told)));
}

}  // namespace

void LldbFace::meet_debugger(std::string_view packet) {
  // GDB on x86 says `xmlRegisters=i386`; LLDB names all processors that it knows.
  is_lldb_ = packet.find("xmlRegisters=i386,") != std::string_view::npos;
}

void LldbFace::change_wishes(rsp::FeatureList& wanted) const {
  if (is_lldb_ && !is_spoken_below_) wanted.set("exec-events", "+");
}

void LldbFace::change_features(rsp::FeatureList& features) const {
  if (!is_lldb_ || is_spoken_below_) return;
  features.remove("qXfer:libraries-svr4:read");
  features.remove("augmented-libraries-svr4-read");
}

Result<std::string> LldbFace::request_for_server(std::string packet) {
  if (!is_lldb_ || is_spoken_below_) return packet;
  if (packet.starts_with("Z3") || packet.starts_with("z3")) packet[1] = kWatchAccess;
  if (packet.starts_with("vCont;C")) return run_for_server(std::move(packet));
  bool kills = packet == "k";
  bool detaches = packet == "D" || packet.starts_with("D;");
  if (!kills && !(detaches && detach_kills_)) return packet;
  auto thread = below_.debugger_thread();
  if (!thread) return fail(std::move(thread.error()));
  // LLDB lets go, too, what the program has forked.
  if (!*thread || !(kills || packet == "D" || parse_hex(packet.substr(2)) == (*thread)->pid))
    return packet;
  killing_ = kills;
  return fmt::format("vKill;{:x}", (*thread)->pid);
}

// Of a program with one thread LLDB says only that this one goes on with a signal; threads that it
// makes then are not to stand.
Result<std::string> LldbFace::run_for_server(std::string packet) {
  auto threads = below_.ask("qfThreadInfo");
  if (!threads) return fail(std::move(threads.error()));
  const std::size_t thread = packet.find(':');
  const bool is_only = thread != packet.npos && *threads == "m" + packet.substr(thread + 1);
  return is_only ? packet + ";c" : packet;
}

std::string LldbFace::stop_for_debugger(std::string_view payload) const {
  if (is_lldb_ && !is_spoken_below_ && payload.starts_with(kExec))
    return exec_stop(payload, is_local_);
  std::string result(payload);
  bool is_end = payload.starts_with('W') || payload.starts_with('X');
  if (is_lldb_ && is_end && std::min(payload.find(';'), payload.size()) == 2) result.insert(1, "0");
  return result;
}

std::string LldbFace::tell(std::string_view payload) {
  if (!is_lldb_ || !payload.starts_with('T')) return std::string(payload);
  auto reply = rsp::parse_stop_reply(payload);
  told_thread_ = reply ? reply->thread : std::nullopt;
  told_ = with_name(payload, told_thread_);
  if (const std::string cause = reply ? cause_of(*reply) : ""; !cause.empty())
    told_ += fmt::format("description:{};", to_hex(as_bytes(cause)));
  return told_;
}

// lldb-server tells it by itself.
std::string LldbFace::cause_of(const rsp::StopReply& reply) {
  const int signal = below_.system_signal(reply.signal);
  if (is_spoken_below_ || reply.reasons != 0 || !is_fault(signal) || !reply.thread ||
      !reply.thread->is_thread())
    return {};
  auto answer = below_.ask_of(reply.thread->thread(), "qXfer:siginfo:read::0,80");
  if (!answer || (!answer->starts_with('l') && !answer->starts_with('m'))) return {};
  return fault_words(signal, as_bytes(rsp::unescape(std::string_view(*answer).substr(1))));
}

// Of a thread, by its number alone. One that was not told of may stand at a breakpoint, which it
// has yet to hit: LLDB steps it over that, and its hit is lost, unless it is told that the thread
// has not stopped.
std::optional<std::string> LldbFace::why_stopped(std::string_view thread) const {
  auto selector = rsp::parse_thread(thread);
  if (selector && told_thread_ && selector->tid == told_thread_->tid) return told_;
  if (is_spoken_below_) return std::nullopt;
  return with_name(fmt::format("T00thread:{};", thread), selector);
}

std::string LldbFace::error_for_debugger(std::string_view error) {
  return "E01;" + to_hex(as_bytes(error.substr(2)));
}

std::string LldbFace::answer_for_debugger(std::string_view payload) const {
  static constexpr std::string_view kWholeDescription = "l<?xml";
  std::string told(payload);
  if (!is_lldb_ || is_spoken_below_ || !payload.starts_with(kWholeDescription)) return told;
  for (const auto& [reg, said] : kSaidOfRegisters)
    if (const std::size_t at = told.find(reg); at != std::string::npos) told.insert(at, said);
  return told;
}

std::string LldbFace::end_for_debugger(std::string_view request, std::string_view payload) const {
  if (killing_ && request.starts_with("vKill;") && payload == "OK") return "X09";
  return std::string(payload);
}

Result<std::optional<std::string>> LldbFace::answer(std::string_view packet) {
  static constexpr std::string_view kRegion = "qMemoryRegionInfo:", kWhy = "qThreadStopInfo";
  if (!is_lldb_) return std::optional<std::string>();
  if (packet.starts_with(kWhy)) return why_stopped(packet.substr(kWhy.size()));
  if (is_spoken_below_) return std::optional<std::string>();
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
  if (!*thread) return std::string(rsp::kFailed);
  return fmt::format("pid:{:x};triple:{};ostype:linux;endian:little;ptrsize:8;", (*thread)->pid,
                     to_hex(as_bytes(kTriple)));
}

Result<std::string> LldbFace::memory_region(std::string_view digits) {
  auto thread = below_.debugger_thread();
  if (!thread) return fail(std::move(thread.error()));
  auto address = parse_hex(digits);
  if (!*thread || !address) return std::string(rsp::kFailed);
  Region region = region_at((*thread)->pid, *address);
  std::string answer =
      fmt::format("start:{:x};size:{:x};", region.begin, region.end - region.begin);
  if (!region.permissions.empty()) answer += "permissions:" + region.permissions + ";";
  if (!region.name.empty()) answer += "name:" + to_hex(as_bytes(region.name)) + ";";
  return answer;
}

}  // namespace tailtrace
