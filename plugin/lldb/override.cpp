#include "plugin/lldb/override.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "decoder/base/output_file.h"
#include "plugin/lldb/recording.h"

namespace tailtrace::lldb_plugin {
namespace {

constexpr const char* kCalls = "thread trace dump function-calls";
constexpr const char* kExport = "thread trace export ctf";

// The debuggers that know of it, and whether it is on there.
std::map<lldb::user_id_t, bool>& states() {
  static std::map<lldb::user_id_t, bool> known;
  return known;
}

// The value behind one of an option's names, taken out of the words with it.
std::string take_option(Words& words, std::initializer_list<std::string_view> names) {
  for (auto word = words.begin(); word != words.end(); ++word) {
    for (std::string_view name : names) {
      bool joined = name.starts_with("--") && word->starts_with(std::string(name) + "=");
      if (!joined && *word != name) continue;
      std::string value = joined ? word->substr(name.size() + 1)
                                 : (word + 1 != words.end() ? *(word + 1) : std::string());
      words.erase(word, word + (joined || word + 1 == words.end() ? 1 : 2));
      return value;
    }
  }
  return {};
}

bool take_flag(Words& words, std::initializer_list<std::string_view> names) {
  return std::erase_if(words, [&](const std::string& word) {
           return std::ranges::find(names, word) != names.end();
         }) != 0;
}

// `--thread=TID` of the thread with LLDB's number; the selected one if none is given.
Result<std::string> thread_option(Session& session, const std::string& index) {
  lldb::SBProcess process = session.target().GetProcess();
  lldb::SBThread thread = session.thread();
  if (!index.empty())
    thread = process.GetThreadByIndexID(
        static_cast<std::uint32_t>(std::strtoul(index.c_str(), nullptr, 10)));
  if (!thread.IsValid())
    return fail(ErrorCode::kUsage, fmt::format("no thread with index: \"{}\"", index));
  return fmt::format("--thread={}", thread.GetThreadID());
}

Result<std::string> calls(Session& session, Words words) {
  std::string file = take_option(words, {"-F", "--file"});
  bool json = take_flag(words, {"-j", "--json", "-J", "--pretty-json"});
  auto thread = thread_option(session, words.empty() ? std::string() : words.front());
  if (!thread) return fail(std::move(thread.error()));
  Words asked{*thread, "all"};
  if (json) asked.insert(asked.begin(), "--json");
  auto text = answer_of_recording(session, "calls", asked);
  if (!text || file.empty()) return text;
  auto out = OutputFile::open(file, OlderFile::kIsReplaced);
  if (!out) return fail(std::move(out.error()));
  if (std::fputs(text->c_str(), out->file()) == EOF) return fail(out->error());
  if (auto ok = out->finish(); !ok) return fail(std::move(ok.error()));
  return std::string();
}

Result<std::string> export_calls(Session& session, Words words) {
  std::string file = take_option(words, {"-f", "--file"});
  auto thread = thread_option(session, take_option(words, {"-t", "--tid"}));
  if (!thread) return fail(std::move(thread.error()));
  if (file.empty())
    return fail(ErrorCode::kUsage, "cannot export the calls", "no file is named",
                "thread trace export ctf --file FILE");
  return answer_of_recording(session, "export", {"--format=chrome", "-o", file, *thread});
}

// LLDB gives no place for what a command says but the debugger's own output.
bool handle(void* baton, const char** argv, bool is_export) {
  auto id = static_cast<lldb::user_id_t>(reinterpret_cast<std::uintptr_t>(baton));
  auto state = states().find(id);
  if (state == states().end() || !state->second) return false;
  lldb::SBDebugger debugger = lldb::SBDebugger::FindDebuggerWithID(static_cast<int>(id));
  lldb::SBCommandReturnObject unused;
  Session session(debugger, unused);
  Words words;
  for (; argv != nullptr && *argv != nullptr; ++argv) words.emplace_back(*argv);
  auto name = std::ranges::find(words, is_export ? "ctf" : "function-calls");
  if (name != words.end()) words.erase(words.begin(), name + 1);
  auto text = is_export ? export_calls(session, words) : calls(session, words);
  std::string said = text ? *text : text.error().to_string() + "\n";
  lldb::SBFile out = text ? debugger.GetOutputFile() : debugger.GetErrorFile();
  std::size_t written = 0;
  out.Write(reinterpret_cast<const std::uint8_t*>(said.data()), said.size(), &written);
  out.Flush();
  return true;
}

bool handle_calls(void* baton, const char** argv) { return handle(baton, argv, false); }
bool handle_export(void* baton, const char** argv) { return handle(baton, argv, true); }

}  // namespace

Result<void> override_commands(Session& session, bool on) {
  lldb::user_id_t id = session.debugger().GetID();
  bool known = states().contains(id);
  states()[id] = on;
  if (known || !on) return {};
  lldb::SBCommandInterpreter interpreter = session.debugger().GetCommandInterpreter();
  void* baton = reinterpret_cast<void*>(static_cast<std::uintptr_t>(id));
  if (interpreter.SetCommandOverrideCallback(kCalls, handle_calls, baton) &&
      interpreter.SetCommandOverrideCallback(kExport, handle_export, baton))
    return {};
  states().erase(id);
  return fail(ErrorCode::kNegative, "cannot take the place of LLDB's commands",
              "this LLDB does not have them");
}

}  // namespace tailtrace::lldb_plugin
