#include "plugin/lldb/loaded.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>
#include <vector>

namespace tailtrace::lldb_plugin {
namespace {

// A `trace load`, and LLDB's number of the newest process before. Those that come have greater
// ones.
struct Load {
  std::uint32_t after = 0;
  std::string file;
};

// Of each debugger, the oldest first.
std::map<lldb::user_id_t, std::vector<Load>>& loads() {
  static std::map<lldb::user_id_t, std::vector<Load>> known;
  return known;
}

std::uint32_t newest_process(lldb::SBDebugger debugger) {
  std::uint32_t newest = 0;
  for (std::uint32_t i = 0; i < debugger.GetNumTargets(); ++i)
    if (lldb::SBProcess process = debugger.GetTargetAtIndex(i).GetProcess(); process.IsValid())
      newest = std::max(newest, process.GetUniqueID());
  return newest;
}

// Its last word is the file. LLDB loads it itself.
bool heed(void* baton, const char** argv) {
  const auto id = static_cast<lldb::user_id_t>(reinterpret_cast<std::uintptr_t>(baton));
  std::string_view named;
  for (; argv != nullptr && *argv != nullptr; ++argv) named = *argv;
  char path[4096] = {};
  lldb::SBFileSpec(std::string(named).c_str(), true).GetPath(path, sizeof path);
  std::error_code error;
  const std::string whole = std::filesystem::absolute(path, error);
  if (!error)
    loads()[id].push_back(
        {newest_process(lldb::SBDebugger::FindDebuggerWithID(static_cast<int>(id))), whole});
  return false;
}

}  // namespace

void heed_loads(lldb::SBDebugger debugger) {
  void* baton = reinterpret_cast<void*>(static_cast<std::uintptr_t>(debugger.GetID()));
  debugger.GetCommandInterpreter().SetCommandOverrideCallback("trace load", heed, baton);
}

bool is_loaded(lldb::SBProcess process) {
  const char* plugin = process.GetPluginName();
  return plugin != nullptr && std::string_view(plugin) == "trace";
}

std::string loaded_from(Session& session) {
  lldb::SBProcess process = session.target().GetProcess();
  const auto known = loads().find(session.debugger().GetID());
  if (!is_loaded(process) || known == loads().end()) return {};
  for (auto load = known->second.rbegin(); load != known->second.rend(); ++load)
    if (load->after < process.GetUniqueID()) return load->file;
  return {};
}

}  // namespace tailtrace::lldb_plugin
