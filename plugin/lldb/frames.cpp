#include "plugin/lldb/frames.h"

#include <fmt/format.h>

#include <map>

#include "plugin/lldb/program.h"

namespace tailtrace::lldb_plugin {
namespace {

constexpr const char* kModule = "tailtrace_lldb";

// The debuggers that were asked to load the module, and whether they could. To load it twice would
// make it forget what it knows.
std::map<lldb::user_id_t, bool>& loaded() {
  static std::map<lldb::user_id_t, bool> known;
  return known;
}

bool can_show_frames(Session& session) {
  auto [known, is_new] = loaded().emplace(session.debugger().GetID(), false);
  if (is_new) {
    std::string file = plugin_folder() / fmt::format("{}.py", kModule);
    known->second = session.command(fmt::format("command script import \"{}\"", file)).has_value();
  }
  return known->second;
}

void run(Session& session, std::string_view function) {
  (void)session.command(fmt::format("script {}.{}(lldb.debugger)", kModule, function));
}

}  // namespace

void show_history_frames(Session& session) {
  if (can_show_frames(session)) run(session, "on");
}

void show_own_frames(Session& session) {
  if (can_show_frames(session)) run(session, "off");
}

}  // namespace tailtrace::lldb_plugin
