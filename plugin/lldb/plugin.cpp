// liblldb-tailtrace.so: `plugin load` adds the command `tailtrace` to LLDB.
#include <nlohmann/json.hpp>

#include "plugin/lldb/loaded.h"
#include "plugin/lldb/past_steps.h"
#include "plugin/lldb/program.h"
#include "plugin/lldb/rows.h"
#include "plugin/lldb/scripts.h"

namespace tailtrace::lldb_plugin {
namespace {

constexpr const char* kHelp = "How the program came to where it stands, and stepping back.";
// LLDB does not show commands that begin so, and still takes them.
constexpr const char* kHidden = "_tailtrace";

class RowCommand final : public lldb::SBCommandPluginInterface {
 public:
  explicit RowCommand(const Row& row) : row_(row) {}

  bool DoExecute(lldb::SBDebugger debugger, char** command,
                 lldb::SBCommandReturnObject& result) override {
    Session session(debugger, result);
    Words words;
    for (; command != nullptr && *command != nullptr; ++command) words.emplace_back(*command);
    Result<void> done = run_row(row_, session, words);
    if (!done) session.fail_with(done.error());
    if (done) result.SetStatus(lldb::eReturnStatusSuccessFinishResult);
    return static_cast<bool>(done);
  }

 private:
  const Row& row_;
};

bool add_commands(lldb::SBDebugger& debugger, const char* name) {
  lldb::SBCommand prefix = debugger.GetCommandInterpreter().AddMultiwordCommand(name, kHelp);
  if (!prefix.IsValid()) return false;
  for (const Row& row : rows())
    // LLDB keeps them as long as it lives.
    prefix.AddCommand(row.name, new RowCommand(row), row.help, syntax_of(row).c_str(), row.repeat);
  return true;
}

Json table_of_rows() {
  auto text_or_null = [](const char* text) { return text == nullptr ? Json() : Json(text); };
  Json commands = Json::array();
  for (const Row& row : rows())
    commands.push_back({{"name", row.name},
                        {"verb", text_or_null(row.verb)},
                        {"arguments", row.arguments},
                        {"syntax", syntax_of(row)},
                        {"help", row.help},
                        {"repeat", text_or_null(row.repeat)}});
  return {{"help", kHelp},
          {"hidden", kHidden},
          {"program", program_path()},
          {"commands", std::move(commands)}};
}

// LLDB asks commands in Python only how a word goes on: those that are seen are, where it can, and
// hand on what they are told.
bool add_to(lldb::SBDebugger debugger) {
  lldb::SBCommandReturnObject unused;
  Session session(debugger, unused);
  mend_steps(debugger);
  heed_loads(debugger);
  bool in_python = has_scripts(session) && add_commands(debugger, kHidden) &&
                   run_script(session, "tailtrace_lldb_commands.add", table_of_rows());
  return in_python || add_commands(debugger, "tailtrace");
}

}  // namespace
}  // namespace tailtrace::lldb_plugin

namespace lldb {

// What `plugin load` calls.
__attribute__((visibility("default"))) bool PluginInitialize(SBDebugger debugger) {
  return tailtrace::lldb_plugin::add_to(debugger);
}

}  // namespace lldb
