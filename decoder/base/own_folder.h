// OwnFolder: a folder, private to the user, for as long as the object lives; then it goes away with
// everything in it, unless it is kept. Those of processes that were killed go away when the next
// one of their kind is made in the same place.
//
// Threading: one thread at a time.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "decoder/base/file.h"
#include "decoder/base/result.h"

namespace tailtrace {

class OwnFolder {
 public:
  // "PARENT/KIND.XXXXXX" with mode 0700. Errors: it cannot be made.
  static Result<OwnFolder> make(const std::string& parent, std::string_view kind);

  // One that was made already.
  explicit OwnFolder(std::string path) : path_(std::move(path)) {}

  OwnFolder(OwnFolder&& other) noexcept
      : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)), keep_(other.keep_) {}
  OwnFolder& operator=(OwnFolder&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(lock_, other.lock_);
    std::swap(keep_, other.keep_);
    return *this;
  }
  ~OwnFolder();

  const std::string& path() const { return path_; }
  void keep() { keep_ = true; }

 private:
  std::string path_;
  UniqueFd lock_;  // of the folder, as long as somebody needs it
  bool keep_ = false;
};

}  // namespace tailtrace
