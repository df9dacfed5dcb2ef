#include "plugin/lldb/step_out.h"

#include <cstdint>
#include <optional>

#include "plugin/lldb/back.h"

namespace tailtrace::lldb_plugin {
namespace {

constexpr std::string_view kName = "step-out";

// Words behind the command's name: a thread, or how other threads run meanwhile.
bool has_words(const char** argv) {
  const char* last = "";
  for (; argv != nullptr && *argv != nullptr; ++argv) last = *argv;
  return *last != '\0' && last != kName;
}

bool is_in_past(Session& session) {
  if (!session.thread().IsValid()) return false;
  auto position = session.packet("qTailtraceWhere:" + session.thread_name());
  return position && position->starts_with('-');
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

// LLDB gives no place for what a command says but the debugger's own output.
bool step_out(void* baton, const char** argv) {
  const auto id = static_cast<int>(reinterpret_cast<std::uintptr_t>(baton));
  lldb::SBDebugger debugger = lldb::SBDebugger::FindDebuggerWithID(id);
  lldb::SBCommandReturnObject result;
  Session session(debugger, result);
  if (has_words(argv) || !is_in_past(session)) return false;
  const auto functions = functions_to_leave(session);
  if (!functions) return false;
  auto left = leave(session, *functions);
  if (left)
    write(debugger.GetOutputFile(), result.GetOutput());
  else
    write(debugger.GetErrorFile(), left.error().to_string() + "\n");
  return true;
}

}  // namespace

void mend_step_out(lldb::SBDebugger& debugger) {
  void* baton = reinterpret_cast<void*>(static_cast<std::uintptr_t>(debugger.GetID()));
  debugger.GetCommandInterpreter().SetCommandOverrideCallback("thread step-out", step_out, baton);
}

}  // namespace tailtrace::lldb_plugin
