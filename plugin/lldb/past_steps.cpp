#include "plugin/lldb/past_steps.h"

#include <cstdint>
#include <optional>

#include "plugin/lldb/back.h"
#include "plugin/lldb/forward.h"
#include "plugin/lldb/positions.h"

namespace tailtrace::lldb_plugin {
namespace {

constexpr const char* kOut = "thread step-out";
constexpr const char* kOver = "thread step-over";
constexpr const char* kIn = "thread step-in";

// Words behind the command's name: a thread, or how other threads run meanwhile.
bool has_words(std::string_view command, const char** argv) {
  std::string_view last;
  for (; argv != nullptr && *argv != nullptr; ++argv) last = *argv;
  return !last.empty() && !command.ends_with(last);
}

// How many functions return until the selected frame has; nothing when it is inlined.
std::optional<std::uint64_t> functions_to_leave(Session& session) {
  lldb::SBThread thread = session.thread();
  lldb::SBFrame selected = thread.GetSelectedFrame();
  if (!selected.IsValid() || selected.IsInlined()) return std::nullopt;
  std::uint64_t functions = 1;
  for (std::uint32_t i = 0; i < selected.GetFrameID(); ++i)
    if (!thread.GetFrameAtIndex(i).IsInlined()) ++functions;
  return functions;
}

void write(lldb::SBFile file, const std::string& text) {
  std::size_t written = 0;
  file.Write(reinterpret_cast<const std::uint8_t*>(text.data()), text.size(), &written);
  file.Flush();
}

Result<bool> step_out(Session& session) {
  const auto functions = functions_to_leave(session);
  if (!functions) return false;
  return leave(session, *functions).map([] { return true; });
}

// Whether it is done, by `step`. LLDB gives no place for what a command says but the debugger's own
// output.
bool step_in_past(void* baton, const char** argv, const char* command,
                  Result<bool> (*step)(Session&)) {
  const auto id = static_cast<int>(reinterpret_cast<std::uintptr_t>(baton));
  lldb::SBDebugger debugger = lldb::SBDebugger::FindDebuggerWithID(id);
  lldb::SBCommandReturnObject result;
  Session session(debugger, result);
  if (has_words(command, argv) || standing(session) == 0) return false;
  auto done = step(session);
  if (!done) write(debugger.GetErrorFile(), done.error().to_string() + "\n");
  if (done && *done) write(debugger.GetOutputFile(), result.GetOutput());
  return !done || *done;
}

bool out_in_past(void* baton, const char** argv) {
  return step_in_past(baton, argv, kOut, step_out);
}

bool over_in_past(void* baton, const char** argv) {
  return step_in_past(baton, argv, kOver, next_line);
}

bool into_in_past(void* baton, const char** argv) {
  return step_in_past(baton, argv, kIn, step_into);
}

// LLDB does not say which thread is to go back, and the server would take the one that stopped
// last.
bool name_selected(void* baton, const char**) {
  const auto id = static_cast<int>(reinterpret_cast<std::uintptr_t>(baton));
  lldb::SBDebugger debugger = lldb::SBDebugger::FindDebuggerWithID(id);
  lldb::SBCommandReturnObject unused;
  Session session(debugger, unused);
  const bool stands = session.target().GetProcess().GetState() == lldb::eStateStopped;
  if (stands && session.thread().IsValid())
    (void)session.packet("QTailtraceSelected:" + session.thread_name());
  return false;
}

}  // namespace

void mend_steps(lldb::SBDebugger& debugger) {
  void* baton = reinterpret_cast<void*>(static_cast<std::uintptr_t>(debugger.GetID()));
  lldb::SBCommandInterpreter interpreter = debugger.GetCommandInterpreter();
  interpreter.SetCommandOverrideCallback(kOut, out_in_past, baton);
  interpreter.SetCommandOverrideCallback(kOver, over_in_past, baton);
  interpreter.SetCommandOverrideCallback(kIn, into_in_past, baton);
  interpreter.SetCommandOverrideCallback("process continue", name_selected, baton);
}

}  // namespace tailtrace::lldb_plugin
