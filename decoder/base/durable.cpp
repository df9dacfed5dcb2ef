#include "decoder/base/durable.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

namespace tailtrace {

Result<void> sync_file(int fd, const std::string& name) {
  // Some file systems have nothing to write out, and say so.
  if (::fsync(fd) == 0 || errno == EINVAL || errno == EROFS) return {};
  return fail(system_error("cannot write " + name));
}

Result<void> sync_folder(int folder_fd, const std::string& path) {
  namespace fs = std::filesystem;
  std::vector<std::string> found;
  std::error_code trouble;
  for (fs::recursive_directory_iterator at(path, trouble), end; !trouble && at != end;
       at.increment(trouble)) {
    found.push_back(at->path().string());
    if (found.size() > kMaxSyncedFiles) break;
  }
  // Where they cannot be listed, all there is is meant.
  if (trouble || found.size() > kMaxSyncedFiles) {
    if (::syncfs(folder_fd) == 0) return {};
    return fail(system_error("cannot write " + path));
  }
  for (const std::string& name : found) {
    UniqueFd fd(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) return fail(system_error("cannot write " + name));
    if (auto ok = sync_file(fd.get(), name); !ok) return ok;
  }
  return sync_file(folder_fd, path);
}

}  // namespace tailtrace
