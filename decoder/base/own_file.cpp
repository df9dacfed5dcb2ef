#include "decoder/base/own_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cassert>

namespace tailtrace {
namespace {

// Takes the first name of a path off it.
std::string_view take_name(std::string_view& path) {
  const std::size_t end = std::min(path.find('/'), path.size());
  const std::string_view name = path.substr(0, end);
  path.remove_prefix(std::min(end + 1, path.size()));
  return name;
}

}  // namespace

bool stays_inside(std::string_view name) {
  if (name.starts_with('/') || name.find('\0') != name.npos) return false;
  while (!name.empty())
    if (take_name(name) == "..") return false;
  return true;
}

Result<void> check_own_file(const std::string& folder, std::string_view name) {
  assert(stays_inside(name));
  std::string path = folder;
  while (!name.empty()) {
    path.append("/").append(take_name(name));
    struct stat info;
    if (::lstat(path.c_str(), &info) != 0) return {};
    if (S_ISLNK(info.st_mode))
      return fail(ErrorCode::kBadInput, "cannot read " + path,
                  "it is a symbolic link, and a bundle must not lead out of its folder",
                  "put the file itself in its place");
  }
  return {};
}

}  // namespace tailtrace
