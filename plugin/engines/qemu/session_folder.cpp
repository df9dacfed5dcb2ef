#include "plugin/engines/qemu/session_folder.h"

#include <fmt/core.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "decoder/symbols/generated_files.h"
#include "plugin/engines/qemu/session_format.h"

namespace tailtrace {
namespace {

constexpr std::string_view kKind = "tailtrace-session";

std::string default_parent() {
  for (const char* variable : {"TAILTRACE_SESSIONS", "XDG_RUNTIME_DIR"}) {
    const char* value = ::getenv(variable);
    if (value != nullptr && *value == '/' && ::access(value, W_OK | X_OK) == 0) return value;
  }
  return ::access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
}

bool is_process_folder(const std::string& name) {
  int pid = 0, program = 0, end = 0;
  return std::sscanf(name.c_str(), "%d.%d%n", &pid, &program, &end) == 2 &&
         static_cast<std::size_t>(end) == name.size();
}

}  // namespace

Result<OwnFolder> make_session_folder(const std::string& parent) {
  Result<OwnFolder> folder = OwnFolder::make(parent.empty() ? default_parent() : parent, kKind);
  if (folder) return folder;
  Error error = std::move(folder.error());
  error.what += " for the recording";
  error.fix = "name a folder that can be written to with TAILTRACE_SESSIONS";
  return fail(std::move(error));
}

Result<OwnFolder> make_session_folder_at(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  NewParents parents(path);
  if (::mkdir(path.c_str(), 0700) != 0) {
    const int number = errno;
    Error error = system_error("cannot make a folder for the recording, " + path, number);
    error.fix = number == EEXIST ? "name a folder that does not exist yet"
                                 : "name another one with --keep=DIR";
    return fail(std::move(error));
  }
  std::error_code ignored;
  return OwnFolder(std::filesystem::absolute(path, ignored).string(), std::move(parents));
}

Result<std::vector<std::string>> process_folders(const std::string& session) {
  std::vector<std::pair<std::filesystem::file_time_type, std::string>> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(session, error))
    if (is_process_folder(entry.path().filename().string())) {
      std::error_code ignored;
      // Written once, when the folder was made.
      auto made = std::filesystem::last_write_time(entry.path() / "process.json", ignored);
      found.emplace_back(made, entry.path().string());
    }
  if (error) return fail(system_error("cannot list the session " + session, error.value()));
  std::sort(found.begin(), found.end());
  std::vector<std::string> folders;
  for (auto& [made, path] : found) folders.push_back(std::move(path));
  return folders;
}

void keep_perf_maps(const std::string& session) {
  namespace fs = std::filesystem;
  auto folders = process_folders(session);
  if (!folders) return;
  for (const fs::path folder : *folders) {
    std::int32_t pid = 0;
    const std::string name = folder.filename().string();
    std::from_chars(name.data(), name.data() + name.size(), pid);
    if (pid <= 0 || ::kill(pid, 0) == 0) continue;
    const std::string map = perf_map_of(pid);
    std::error_code error;
    const fs::path kept = folder / kPerfMapName;
    if (map.empty() || fs::exists(kept, error)) continue;
    // An older one is that of an earlier process.
    const auto made = fs::last_write_time(folder / kProcessName, error);
    if (error || fs::last_write_time(map, error) < made || error) continue;
    Result<Bytes> bytes = read_generated_file(map);
    if (!bytes) continue;
    std::ofstream file(kept, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes->data()),
               static_cast<std::streamsize>(bytes->size()));
    if (!file.flush()) fs::remove(kept, error);
  }
}

std::string process_folder_path(const std::string& session, int pid, unsigned program_index) {
  return fmt::format("{}/{}.{}", session, pid, program_index);
}

}  // namespace tailtrace
