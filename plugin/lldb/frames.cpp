#include "plugin/lldb/frames.h"

#include "plugin/lldb/scripts.h"

namespace tailtrace::lldb_plugin {

void show_history_frames(Session& session) {
  if (has_scripts(session)) run_script(session, "tailtrace_lldb_frames.on");
}

void lead_history_frames(Session& session) {
  if (has_scripts(session)) run_script(session, "tailtrace_lldb_frames.lead");
}

void follow_history_frames(Session& session) {
  if (has_scripts(session)) run_script(session, "tailtrace_lldb_frames.follow");
}

void look_for_history_frames(Session& session) {
  if (has_scripts(session)) run_script(session, "tailtrace_lldb_frames.look");
}

void show_own_frames(Session& session) {
  if (has_scripts(session)) run_script(session, "tailtrace_lldb_frames.off");
}

}  // namespace tailtrace::lldb_plugin
