#include "plugin/engines/qemu_plugin/exec_path.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <climits>
#include <cstdlib>
#include <string_view>

namespace tailtrace {
namespace {

std::string g_program;

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

}  // namespace

void remember_program(const std::string& path) {
  char* whole = ::realpath(path.c_str(), nullptr);
  g_program = whole != nullptr ? whole : path;
  std::free(whole);
}

std::optional<std::string> lasting_path(const std::string& path) {
  if (is_program(path)) return g_program;
  if (auto fd = descriptor_named(path)) return lasting_path_of(*fd);
  return path;
}

std::optional<std::string> lasting_path_of(int fd) {
  const std::string name = "/proc/self/fd/" + std::to_string(fd);
  const int flags = ::fcntl(fd, F_GETFD);
  if (flags < 0) return std::nullopt;
  if ((flags & FD_CLOEXEC) == 0) return name;
  auto path = where_it_leads(name);
  // It may have been deleted, or never have had a name.
  if (!path || !are_one_file(*path, name)) return std::nullopt;
  return path;
}

}  // namespace tailtrace
