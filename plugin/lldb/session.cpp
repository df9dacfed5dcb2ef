#include "plugin/lldb/session.h"

#include <fmt/format.h>

#include <algorithm>

namespace tailtrace::lldb_plugin {
namespace {

constexpr std::string_view kPacketLine = "  packet: ", kResponse = "response: ";
constexpr std::string_view kGdbStart = "record btrace", kOurStart = "tailtrace start";

tl::unexpected<Error> not_our_server() {
  return fail(ErrorCode::kNoEngine, "cannot ask for the history",
              "the debug server of this process is not tailtrace's",
              "export LLDB_DEBUGSERVER_PATH=$(command -v tailtrace-lldb-server), then start LLDB");
}

// LLDB shows what a packet was answered with behind what came before the answer.
struct Reply {
  std::string output;
  std::string answer;
};
Reply split(const std::string& text) {
  std::size_t packet = text.rfind(kPacketLine);
  std::size_t response = text.rfind(kResponse);
  if (packet == std::string::npos || response == std::string::npos) return {text, ""};
  std::string answer = text.substr(response + kResponse.size());
  answer.erase(std::min(answer.find('\n'), answer.size()));
  return {text.substr(0, packet), std::move(answer)};
}

std::string_view behind(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

// The server does not know who asks, and names GDB's command.
std::string with_our_words(std::string text) {
  std::size_t at = text.find(kGdbStart);
  if (at != std::string::npos) text.replace(at, kGdbStart.size(), kOurStart);
  return text;
}

}  // namespace

Error error_in(std::string_view text) {
  Error error{ErrorCode::kNegative, {}, {}, {}, {}};
  while (!text.empty()) {
    std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    for (auto [prefix, part] : {std::pair{"error: ", &error.what},
                                {"  why:  ", &error.why},
                                {"  fix:  ", &error.fix},
                                {"  now:  ", &error.now}})
      if (line.starts_with(prefix)) *part = behind(line, prefix);
  }
  return error;
}

Result<std::string> Session::command(const std::string& line) {
  lldb::SBCommandReturnObject result;
  debugger_.GetCommandInterpreter().HandleCommand(line.c_str(), result, false);
  auto text = [](const char* said) { return std::string(said == nullptr ? "" : said); };
  if (result.Succeeded()) return text(result.GetOutput());
  std::string what(behind(text(result.GetError()), "error: "));
  while (what.ends_with('\n')) what.pop_back();
  std::ranges::replace(what, '\n', ' ');
  return fail(ErrorCode::kNegative, std::move(what));
}

Result<std::string> Session::monitor(const std::string& words) {
  if (!target().GetProcess().IsValid())
    return fail(ErrorCode::kNegative, "cannot show a history", "there is no process", "run");
  auto text = command("process plugin packet monitor tailtrace " + words);
  if (!text) return not_our_server();
  Reply reply = split(*text);
  if (reply.answer != "OK") return not_our_server();
  if (reply.output.starts_with("error: "))
    return fail(error_in(with_our_words(std::move(reply.output))));
  return with_our_words(std::move(reply.output));
}

std::string Session::thread_name() {
  return fmt::format("p{:x}.{:x}", target().GetProcess().GetProcessID(), thread().GetThreadID());
}

Result<std::string> Session::monitor_thread(const std::string& words) {
  return monitor(thread().IsValid() ? words + " " + thread_name() : words);
}

Result<std::vector<Json>> Session::monitor_json(const std::string& words) {
  auto text = monitor_thread(words);
  if (!text) return fail(std::move(text.error()));
  std::vector<Json> lines;
  std::string_view rest = *text;
  while (!rest.empty()) {
    std::size_t end = std::min(rest.find('\n'), rest.size());
    Json line = Json::parse(rest.substr(0, end), nullptr, false);
    if (line.is_object()) lines.push_back(std::move(line));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (!lines.empty()) return lines;
  return fail(ErrorCode::kBadInput, "cannot read the debug server's answer");
}

Result<std::string> Session::packet(const std::string& packet) {
  auto text = command("process plugin packet send " + packet);
  if (!text) return not_our_server();
  std::string answer = split(*text).answer;
  if (answer.empty()) return not_our_server();
  return answer;
}

}  // namespace tailtrace::lldb_plugin
