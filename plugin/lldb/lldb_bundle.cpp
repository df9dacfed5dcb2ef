#include "plugin/lldb/lldb_bundle.h"

#include <filesystem>
#include <fstream>

namespace tailtrace::lldb_plugin {
namespace {

namespace fs = std::filesystem;

fs::path path_of(lldb::SBFileSpec file) {
  char path[4096] = {};
  (void)file.GetPath(path, sizeof path);
  return path;
}

// Copies the target's modules into the folder that LLDB leaves out, as it does those whose path is
// not absolute: of a bundle that was loaded by such a path, all. What is added to the list of
// modules. Errors: kSystem.
Result<Json> add_modules(lldb::SBTarget target, const fs::path& folder) {
  Json modules = Json::array();
  std::error_code error;
  for (std::uint32_t i = 0; i < target.GetNumModules(); ++i) {
    lldb::SBModule module = target.GetModuleAtIndex(i);
    const fs::path file = path_of(module.GetFileSpec());
    if (file.is_absolute() || !fs::is_regular_file(file, error)) continue;
    const fs::path system_path = path_of(module.GetPlatformFileSpec());
    const fs::path copy = "modules" / system_path.relative_path();
    fs::create_directories((folder / copy).parent_path(), error);
    if (!error) fs::copy_file(file, folder / copy, error);
    if (error) return fail(ErrorCode::kSystem, "cannot copy " + file.string(), error.message());
    modules.push_back({{"file", copy.string()},
                       {"loadAddress", module.GetObjectFileHeaderAddress().GetLoadAddress(target)},
                       {"systemPath", system_path.string()},
                       {"uuid", module.GetUUIDString()}});
  }
  return modules;
}

}  // namespace

Result<std::string> save_by_lldb(Session& session, const std::string& folder) {
  auto said = session.command("trace save " + lldb_word(folder));
  if (!said) return said;
  auto modules = add_modules(session.target(), folder);
  if (!modules) return fail(std::move(modules.error()));
  if (modules->empty()) return said;
  const std::string path = folder + "/trace.json";
  std::ifstream in(path);
  Json bundle = Json::parse(in, nullptr, false);
  if (!bundle.is_object()) return said;
  for (Json& process : bundle["processes"])
    if (process.value("pid", lldb::pid_t{0}) == session.target().GetProcess().GetProcessID())
      process["modules"].insert(process["modules"].end(), modules->begin(), modules->end());
  std::ofstream(path) << bundle.dump(2);
  return said;
}

}  // namespace tailtrace::lldb_plugin
