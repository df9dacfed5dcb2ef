// Files that are on the disk, not only on their way there.
//
// Threading: pure functions.
#pragma once

#include <string>

#include "decoder/base/file.h"
#include "decoder/base/result.h"

namespace tailtrace {

// Of so many files each is written out by itself; of more the whole file system at once, which is
// then sooner done.
constexpr std::size_t kMaxSyncedFiles = 64;

// What is open there is on the disk when this returns. `name` is what errors call it.
Result<void> sync_file(int fd, const std::string& name);

// Everything below the folder is, and the folder too. `folder_fd` is the folder, open.
Result<void> sync_folder(int folder_fd, const std::string& path);

}  // namespace tailtrace
