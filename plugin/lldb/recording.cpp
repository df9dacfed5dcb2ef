#include "plugin/lldb/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <utility>

#include "decoder/base/own_folder.h"
#include "plugin/lldb/lldb_bundle.h"
#include "plugin/lldb/loaded.h"
#include "plugin/lldb/native.h"
#include "plugin/lldb/program.h"

namespace tailtrace::lldb_plugin {
namespace {

// What each debugger has open.
std::map<lldb::user_id_t, std::string>& opened() {
  static std::map<lldb::user_id_t, std::string> folders;
  return folders;
}

Result<OwnFolder> make_temporary_folder() {
  std::error_code error;
  const std::string parent = std::filesystem::temp_directory_path(error);
  return OwnFolder::make(error ? "/tmp" : parent, "tailtrace-lldb");
}

tl::unexpected<Error> refused(const Answer& answer) {
  Error error = error_in(answer.err);
  // An answer that is no is a line of its own.
  if (error.what.empty()) error.what = answer.err.substr(0, answer.err.find('\n'));
  if (error.what.empty()) error.what = "tailtrace has ended without a word";
  return fail(std::move(error));
}

Result<std::string> ask(Session& session, const std::string& verb, const std::string& path,
                        const Words& words) {
  Words args{verb, path};
  args.insert(args.end(), words.begin(), words.end());
  auto answer = run_tailtrace(session.debugger(), args);
  if (!answer) return fail(std::move(answer.error()));
  bool is_no = answer->status == static_cast<int>(ErrorCode::kNegative);
  std::string said = answer->err + answer->out;
  if (answer->status != 0 && !(is_no && !answer->out.empty())) return refused(*answer);
  return said;
}

// Others are of all threads unless one is named.
bool is_of_one_thread(const std::string& verb, const Words& words) {
  bool names_item =
      std::ranges::any_of(words, [](const std::string& word) { return word.starts_with("--at="); });
  static constexpr std::array kVerbs = {"history", "calls", "why", "diff", "hits", "last"};
  return names_item || std::ranges::find(kVerbs, verb) != kVerbs.end();
}

bool names_thread(const Words& words) {
  return std::ranges::any_of(words, [](const std::string& word) {
    return word.starts_with("--thread") || word == "--merged";
  });
}

// Where LLDB has the trace, whoever recorded it.
Result<void> save_into(Session& session, const std::string& path) {
  auto saved = has_native(session) ? save_native(session, path) : session.monitor("save " + path);
  if (saved) return {};
  bool elsewhere = saved.error().code == ErrorCode::kNoEngine;
  bool by_lldb = elsewhere && save_by_lldb(session, path);
  return by_lldb ? Result<void>() : fail(std::move(saved.error()));
}

}  // namespace

Result<void> open_recording(Session& session, const std::string& named) {
  std::error_code error;
  std::string path = std::filesystem::absolute(named, error);
  if (error) path = named;
  auto seen = ask(session, "info", path, {});
  if (!seen) return fail(std::move(seen.error()));
  opened()[session.debugger().GetID()] = path;
  session.print(*seen);
  return {};
}

Result<void> close_recording(Session& session) {
  if (opened().erase(session.debugger().GetID()) != 0) return {};
  return fail(ErrorCode::kNegative, "cannot close a recording", "none is open",
              "tailtrace open FOLDER");
}

bool has_recording(Session& session) { return opened().contains(session.debugger().GetID()); }

Result<std::string> answer_of_recording(Session& session, const std::string& verb,
                                        const Words& words) {
  if (auto open = opened().find(session.debugger().GetID()); open != opened().end())
    return ask(session, verb, open->second, words);
  Words asked = words;
  if (is_of_one_thread(verb, words) && session.thread().IsValid() && !names_thread(words))
    asked.push_back(fmt::format("--thread={}", session.thread().GetThreadID()));
  if (const std::string file = loaded_from(session); !file.empty())
    return ask(session, verb, file, asked);
  auto folder = make_temporary_folder();
  if (!folder) return fail(std::move(folder.error()));
  std::string path = folder->path() + "/recording";
  if (auto saved = save_into(session, path); !saved) {
    // Nobody has asked for that folder.
    if (saved.error().code == ErrorCode::kNegative) saved.error().what = "cannot show a history";
    return fail(std::move(saved.error()));
  }
  return ask(session, verb, path, asked);
}

Result<void> ask_recording(Session& session, const std::string& verb, const Words& words) {
  auto text = answer_of_recording(session, verb, words);
  if (!text) return fail(std::move(text.error()));
  session.print(*text);
  return {};
}

}  // namespace tailtrace::lldb_plugin
