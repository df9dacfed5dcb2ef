// A folder of our own for the lifetime of the object: mode 0700, gone with everything in it
// afterwards.
//
// Threading: immutable.
#pragma once

#include <string>

#include "decoder/base/result.h"

namespace tailtrace {

class PrivateFolder {
 public:
  // In the user's runtime folder, which is in memory, or where temporary files go.
  static Result<PrivateFolder> make();

  PrivateFolder(PrivateFolder&& other) noexcept { path_.swap(other.path_); }
  PrivateFolder& operator=(PrivateFolder&& other) noexcept {
    path_.swap(other.path_);
    return *this;
  }
  ~PrivateFolder();

  const std::string& path() const { return path_; }

 private:
  PrivateFolder() = default;
  std::string path_;
};

}  // namespace tailtrace
