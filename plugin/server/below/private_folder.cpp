#include "plugin/server/below/private_folder.h"

#include <stdlib.h>
#include <unistd.h>

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

Result<OwnFolder> make_private_folder() {
  return OwnFolder::make(parent_folder(), "tailtrace-run");
}

}  // namespace tailtrace
