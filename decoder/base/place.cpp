#include "decoder/base/place.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

namespace tailtrace {

std::string folder_holding(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

bool move_to_free_place(const std::string& from, const std::string& to) {
  const int moved = ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE);
  if (moved == 0 || errno != EINVAL) return moved == 0;
  return std::rename(from.c_str(), to.c_str()) == 0;
}

}  // namespace tailtrace
