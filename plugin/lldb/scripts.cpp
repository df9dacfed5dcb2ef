#include "plugin/lldb/scripts.h"

#include <fmt/format.h>

#include <charconv>
#include <map>

#include "plugin/lldb/program.h"

namespace tailtrace::lldb_plugin {
namespace {

constexpr int kOldest = 22;  // the LLDB that asks scripts for frames and for the ends of words
constexpr const char* kModules[] = {"tailtrace_lldb_frames", "tailtrace_lldb_commands"};

// The debuggers that were asked to load the modules, and whether they could. To load them twice
// would make them forget what they know.
std::map<lldb::user_id_t, bool>& loaded() {
  static std::map<lldb::user_id_t, bool> known;
  return known;
}

int version() {
  std::string_view text = lldb::SBDebugger::GetVersionString();
  text.remove_prefix(std::min(text.find_first_of("0123456789"), text.size()));
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

bool load(Session& session) {
  if (version() < kOldest) return false;
  for (const char* module : kModules) {
    std::string file = plugin_folder() / fmt::format("{}.py", module);
    if (!session.command("command script import " + lldb_word(file))) return false;
  }
  return true;
}

}  // namespace

bool has_scripts(Session& session) {
  auto [known, is_new] = loaded().emplace(session.debugger().GetID(), false);
  if (is_new) known->second = load(session);
  return known->second;
}

bool run_script(Session& session, const std::string& function) {
  return session.command(fmt::format("script {}(lldb.debugger)", function)).has_value();
}

bool run_script(Session& session, const std::string& function, const Json& argument) {
  std::string text = argument.dump();
  // LLDB would compute what stands between them.
  for (std::size_t at = 0; (at = text.find('`', at)) != text.npos;) text.replace(at, 1, "\\u0060");
  // A string of JSON is one of Python.
  return session.command(fmt::format("script {}(lldb.debugger, {})", function, Json(text).dump()))
      .has_value();
}

}  // namespace tailtrace::lldb_plugin
