#include "plugin/server/private_folder.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

namespace tailtrace {
namespace {

std::string parent_folder() {
  for (const char* name : {"XDG_RUNTIME_DIR", "TMPDIR"}) {
    const char* path = ::getenv(name);
    if (path != nullptr && *path == '/' && ::access(path, W_OK) == 0) return path;
  }
  return "/tmp";
}

}  // namespace

Result<PrivateFolder> PrivateFolder::make() {
  PrivateFolder folder;
  std::string name = parent_folder() + "/tailtrace-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr)
    return fail(system_error("cannot make a temporary folder in " + parent_folder()));
  folder.path_ = name;
  return folder;
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace tailtrace
