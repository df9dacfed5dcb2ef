#include "plugin/lldb/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "decoder/base/bytes.h"

namespace tailtrace::lldb_plugin {
namespace {

constexpr std::string_view kResponse = "response: ";
constexpr std::string_view kOurStart = "tailtrace start";

tl::unexpected<Error> no_process(ErrorCode code) {
  return fail(code, "cannot show a history", "there is no process", "run");
}

tl::unexpected<Error> not_our_server() {
  return fail(ErrorCode::kNoEngine, "cannot ask for the history",
              "the debug server of this process is not tailtrace's",
              "export LLDB_DEBUGSERVER_PATH=$(command -v tailtrace-lldb-server), then start LLDB");
}

// LLDB shows a packet, and what it was answered with.
std::string answer_in(std::string_view text) {
  std::size_t response = text.find(kResponse);
  if (response == text.npos) return {};
  text.remove_prefix(response + kResponse.size());
  if (text.ends_with('\n')) text.remove_suffix(1);
  return std::string(text.starts_with('\n') ? std::string_view() : text);  // it knows no answer
}

std::string_view behind(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

// The server does not know who asks, and names GDB's command, or none.
std::string with_our_words(std::string text) {
  for (std::string_view start : {"record btrace", "record first"}) {
    std::size_t at = text.find(start);
    if (at != std::string::npos) text.replace(at, start.size(), kOurStart);
  }
  return text;
}

}  // namespace

std::string lldb_word(std::string_view word) {
  std::string text = "\"";
  for (const char c : word) {
    if (c == '\\' || c == '"' || c == '`') text += '\\';
    text += c;
  }
  return text + "\"";
}

tl::unexpected<Error> interrupted() {
  return fail(ErrorCode::kGone, "tailtrace was interrupted", "nothing of its answer is shown");
}

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

// The server answers each packet in time, if only by saying that it is at work: LLDB does not
// wait for an answer that takes too long, and is interrupted only between two packets.
Result<std::string> Session::question(const std::string& words) {
  auto answer = packet("qTailtrace:" + to_hex(as_bytes(words)));
  while (answer && *answer == "w") answer = packet("qTailtrace.more");
  if (!answer && debugger_.InterruptRequested()) stop_answering();
  if (!answer) return answer;
  if (!answer->starts_with('a')) return not_our_server();
  return answer->substr(1);
}

// Else the server is at work on what nobody waits for. LLDB runs no further command on the thread
// that was interrupted.
void Session::stop_answering() {
  std::thread([this] { (void)command("process plugin packet send qTailtrace.stop"); }).join();
}

Result<std::string> Session::monitor(const std::string& words) {
  if (!target().GetProcess().IsValid()) return no_process(ErrorCode::kNegative);
  auto text = question(words);
  if (!text) return text;
  if (text->starts_with("error: ")) return fail(error_in(with_our_words(std::move(*text))));
  return with_our_words(std::move(*text));
}

std::string Session::name_of(lldb::SBThread thread) {
  return fmt::format("p{:x}.{:x}", target().GetProcess().GetProcessID(), thread.GetThreadID());
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
  if (debugger_.InterruptRequested()) return interrupted();
  auto text = command("process plugin packet send " + packet);
  if (!text && debugger_.InterruptRequested()) return interrupted();
  if (!text) return no_answer();
  std::string answer = answer_in(*text);
  if (answer.empty()) return no_answer();
  return answer;
}

// LLDB says the same of a server that does not know a packet, and of one that it has let go.
tl::unexpected<Error> Session::no_answer() {
  lldb::SBProcess process = target().GetProcess();
  if (!process.IsValid() || process.GetState() == lldb::eStateExited)
    return no_process(ErrorCode::kNoEngine);
  auto text = command("process plugin packet send qC");  // every server knows that
  if (!text || !answer_in(*text).empty()) return not_our_server();
  return fail(ErrorCode::kGone, "cannot ask for the history",
              "LLDB has no connection to the debug server any more: it ended, or did not answer in "
              "time",
              "settings set plugin.process.gdb-remote.packet-timeout 60, then start anew");
}

}  // namespace tailtrace::lldb_plugin
