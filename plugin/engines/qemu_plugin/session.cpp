#include "plugin/engines/qemu_plugin/session.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "plugin/engines/qemu/session_format.h"

namespace tailtrace {
namespace {

// A recording takes a few megabytes at least, of memory if the session is there.
constexpr std::size_t kMaxProcesses = 64;

struct Listed {
  long long made_ns;
  int pid;
  std::string path;

  bool operator<(const Listed& other) const { return made_ns < other.made_ns; }
};

std::vector<Listed> list_processes(const std::string& session) {
  std::vector<Listed> found;
  DIR* folder = ::opendir(session.c_str());
  if (folder == nullptr) return found;
  while (const dirent* entry = ::readdir(folder)) {
    int pid = 0, program = 0;
    if (std::sscanf(entry->d_name, "%d.%d", &pid, &program) != 2) continue;
    std::string path = session + "/" + entry->d_name;
    struct stat info;
    if (::stat((path + "/" + kProcessName).c_str(), &info) != 0) continue;
    found.push_back({info.st_mtim.tv_sec * 1'000'000'000ll + info.st_mtim.tv_nsec, pid, path});
  }
  ::closedir(folder);
  return found;
}

// The folder of a program that its process has replaced counts as ended as well.
bool has_ended(const Listed& one, const std::vector<Listed>& all) {
  if (::kill(one.pid, 0) != 0 && errno == ESRCH) return true;
  return std::any_of(all.begin(), all.end(),
                     [&](const Listed& other) { return other.pid == one.pid && one < other; });
}

}  // namespace

void remove_folder(const std::string& path) {
  if (DIR* folder = ::opendir(path.c_str())) {
    while (const dirent* entry = ::readdir(folder))
      if (entry->d_name[0] != '.') ::unlink((path + "/" + entry->d_name).c_str());
    ::closedir(folder);
  }
  ::rmdir(path.c_str());
}

void note_missing(const std::string& session) {
  int fd = ::open((session + "/" + kMissingName).c_str(),
                  O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return;
  [[maybe_unused]] ssize_t n = ::write(fd, ".", 1);
  ::close(fd);
}

void make_room_for_one(const std::string& session) {
  std::vector<Listed> all = list_processes(session);
  if (all.size() < kMaxProcesses) return;
  std::sort(all.begin(), all.end());
  std::size_t left = all.size();
  for (const Listed& one : all) {
    if (left < kMaxProcesses) return;
    if (!has_ended(one, all)) continue;
    remove_folder(one.path);
    note_missing(session);
    --left;
  }
}

}  // namespace tailtrace
