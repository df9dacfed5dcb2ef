#include "plugin/engines/qemu_plugin/exec_path.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <string_view>

namespace tailtrace {
namespace {

// Programs count on low numbers for what they open themselves.
constexpr rlim_t kHighNumber = 960;

std::string g_program;
constinit thread_local int t_held = -1;

std::string own_number() { return std::to_string(::getpid()); }

bool is_program(std::string_view path) {
  return path == "/proc/self/exe" || path == "/proc/thread-self/exe" ||
         path == "/proc/" + own_number() + "/exe";
}

// The descriptor whose name this is.
std::optional<int> descriptor_named(std::string_view path) {
  for (const std::string& folder :
       {std::string("/dev/fd/"), std::string("/proc/self/fd/"),
        std::string("/proc/thread-self/fd/"), "/proc/" + own_number() + "/fd/"}) {
    if (path.substr(0, folder.size()) != folder) continue;
    path.remove_prefix(folder.size());
    int fd = 0;
    auto [end, error] = std::from_chars(path.data(), path.data() + path.size(), fd);
    if (error == std::errc() && end == path.data() + path.size()) return fd;
    break;
  }
  return std::nullopt;
}

std::optional<std::string> where_it_leads(const std::string& link) {
  char path[PATH_MAX];
  ssize_t size = ::readlink(link.c_str(), path, sizeof path);
  if (size <= 0 || static_cast<std::size_t>(size) == sizeof path) return std::nullopt;
  return std::string(path, static_cast<std::size_t>(size));
}

bool are_one_file(const std::string& a, const std::string& b) {
  struct stat of_a, of_b;
  return ::stat(a.c_str(), &of_a) == 0 && ::stat(b.c_str(), &of_b) == 0 &&
         of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

std::string name_of_descriptor(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

std::optional<std::string> held_path_of(int fd) {
  rlimit limit{};
  struct stat info;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || ::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
    return std::nullopt;
  release_descriptor();
  t_held = ::fcntl(fd, F_DUPFD, static_cast<int>(std::min(limit.rlim_cur / 2, kHighNumber)));
  return t_held < 0 ? std::nullopt : std::optional(name_of_descriptor(t_held));
}

}  // namespace

void remember_program(const std::string& path) {
  char* whole = ::realpath(path.c_str(), nullptr);
  g_program = whole != nullptr && are_one_file(whole, path) ? whole : path;
  std::free(whole);
}

std::optional<std::string> lasting_path(const std::string& path) {
  const std::string& meant = is_program(path) ? g_program : path;
  if (auto fd = descriptor_named(meant)) return lasting_path_of(*fd);
  return meant;
}

std::optional<std::string> lasting_path_of(int fd) {
  const std::string name = name_of_descriptor(fd);
  const int flags = ::fcntl(fd, F_GETFD);
  if (flags < 0) return std::nullopt;
  if ((flags & FD_CLOEXEC) == 0) return name;
  auto path = where_it_leads(name);
  // It may have been deleted, or never have had a name.
  return path && are_one_file(*path, name) ? path : held_path_of(fd);
}

int held_descriptor() { return t_held; }

void release_descriptor() {
  if (t_held >= 0) ::close(t_held);
  t_held = -1;
}

void keep_descriptor_from_next(int fd) { ::fcntl(fd, F_SETFD, FD_CLOEXEC); }

}  // namespace tailtrace
