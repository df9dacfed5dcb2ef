#include "decoder/base/own_folder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

namespace tailtrace {
namespace {

// A folder is locked as soon as it is made; a younger one may be just about to be.
constexpr time_t kMinAge_s = 60;
constexpr std::size_t kMaxRemoved = 256;
// What mkdtemp puts into a name.
constexpr std::string_view kOwnLetters = "XXXXXX";

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
void remove_left_behind(const std::string& parent, const std::string& prefix) {
  std::error_code ignored;
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(parent, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix) || name.size() != prefix.size() + kOwnLetters.size()) continue;
    if (is_left_behind(entry.path().string())) found.push_back(entry.path().string());
    if (found.size() == kMaxRemoved) break;
  }
  for (const std::string& path : found) std::filesystem::remove_all(path, ignored);
}

}  // namespace

NewParents::NewParents(const std::string& path) {
  std::error_code ignored;
  std::vector<std::filesystem::path> missing;
  std::filesystem::path parent = std::filesystem::absolute(path, ignored).parent_path();
  for (; parent.has_relative_path() && !std::filesystem::exists(parent, ignored);
       parent = parent.parent_path())
    missing.push_back(parent);
  for (; !missing.empty(); missing.pop_back())
    if (::mkdir(missing.back().c_str(), 0700) == 0) made_.push_back(missing.back().string());
}

NewParents::~NewParents() {
  for (; !made_.empty(); made_.pop_back()) ::rmdir(made_.back().c_str());
}

Result<OwnFolder> OwnFolder::make(const std::string& parent, std::string_view kind) {
  const std::string prefix = fmt::format("{}.", kind);
  remove_left_behind(parent, prefix);
  std::string path = fmt::format("{}/{}{}", parent, prefix, kOwnLetters);
  if (::mkdtemp(path.data()) == nullptr)  // with mode 0700
    return fail(system_error("cannot make a folder in " + parent));
  OwnFolder folder(std::move(path));
  folder.lock_ = lock_folder(folder.path_);
  return folder;
}

OwnFolder::~OwnFolder() {
  std::error_code ignored;
  if (path_.empty() || keep_) return;
  // An empty one needs no descriptor, of which there may be none.
  if (::rmdir(path_.c_str()) != 0) std::filesystem::remove_all(path_, ignored);
}

}  // namespace tailtrace
