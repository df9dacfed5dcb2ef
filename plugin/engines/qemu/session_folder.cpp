#include "plugin/engines/qemu/session_folder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
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

constexpr std::string_view kPrefix = "tailtrace-session.";
// A folder is locked as soon as it is made; a younger one may be just about to be.
constexpr time_t kMinAge_s = 60;
constexpr int kMaxRemoved = 256;

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

// Nothing if somebody else has it locked.
UniqueFd lock_folder(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) fd.reset();
  return fd;
}

bool is_left_behind(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() &&
         info.st_mtime + kMinAge_s < ::time(nullptr) && lock_folder(path);
}

// Whoever was killed could not do it.
void remove_left_behind(const std::string& parent) {
  std::error_code ignored;
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(parent, ignored)) {
    if (!entry.path().filename().string().starts_with(kPrefix)) continue;
    if (is_left_behind(entry.path().string())) found.push_back(entry.path().string());
    if (found.size() == kMaxRemoved) break;
  }
  for (const std::string& path : found) std::filesystem::remove_all(path, ignored);
}

}  // namespace

Result<SessionFolder> SessionFolder::make(const std::string& parent) {
  const std::string place = parent.empty() ? default_parent() : parent;
  remove_left_behind(place);
  std::string path = fmt::format("{}/{}XXXXXX", place, kPrefix);
  if (::mkdtemp(path.data()) == nullptr) {  // with mode 0700
    Error error = system_error("cannot make a folder for the recording, " + path);
    error.fix = "name a folder that can be written to with TAILTRACE_SESSIONS";
    return fail(std::move(error));
  }
  SessionFolder folder(std::move(path));
  folder.lock_ = lock_folder(folder.path_);
  return folder;
}

Result<SessionFolder> SessionFolder::make_at(const std::string& path) {
  std::error_code ignored;
  std::filesystem::path parent = std::filesystem::absolute(path, ignored).parent_path();
  std::filesystem::create_directories(parent, ignored);  // mkdir says what is wrong
  if (::mkdir(path.c_str(), 0700) != 0) {
    const int number = errno;
    Error error = system_error("cannot make a folder for the recording, " + path, number);
    if (number == EEXIST) error.fix = "name a folder that does not exist yet";
    return fail(std::move(error));
  }
  return SessionFolder(std::filesystem::absolute(path, ignored).string());
}

SessionFolder::~SessionFolder() {
  std::error_code ignored;
  if (!path_.empty() && !keep_) std::filesystem::remove_all(path_, ignored);
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
