// OwnFolder: a folder, private to the user, for as long as the object lives; then it goes away with
// everything in it, unless it is kept. Those of processes that were killed go away when the next
// one of their kind is made in the same place.
//
// Threading: one thread at a time.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "decoder/base/file.h"
#include "decoder/base/result.h"

namespace tailtrace {

// The folders above a path, made where they are missing, for the user alone. Those that were made
// go away with the object while they are empty, unless they are kept.
class NewParents {
 public:
  NewParents() = default;
  // What cannot be made is missing then, which is told by what needs it.
  explicit NewParents(const std::string& path);
  NewParents(NewParents&& other) noexcept : made_(std::exchange(other.made_, {})) {}
  NewParents& operator=(NewParents&& other) noexcept {
    std::swap(made_, other.made_);
    return *this;
  }
  ~NewParents();

  void keep() { made_.clear(); }

 private:
  std::vector<std::string> made_;  // the outermost first
};

class OwnFolder {
 public:
  // "PARENT/KIND.XXXXXX" with mode 0700. Errors: it cannot be made.
  static Result<OwnFolder> make(const std::string& parent, std::string_view kind);

  // One that was made already, and those above it, which go away with it or stay.
  explicit OwnFolder(std::string path, NewParents parents = {})
      : parents_(std::move(parents)), path_(std::move(path)) {}

  OwnFolder(OwnFolder&& other) noexcept
      : parents_(std::move(other.parents_)),
        path_(std::exchange(other.path_, {})),
        lock_(std::move(other.lock_)),
        keep_(other.keep_) {}
  OwnFolder& operator=(OwnFolder&& other) noexcept {
    std::swap(parents_, other.parents_);
    std::swap(path_, other.path_);
    std::swap(lock_, other.lock_);
    std::swap(keep_, other.keep_);
    return *this;
  }
  ~OwnFolder();

  const std::string& path() const { return path_; }
  void keep() {
    keep_ = true;
    parents_.keep();
  }

 private:
  NewParents parents_;  // they are the last to go
  std::string path_;
  UniqueFd lock_;  // of the folder, as long as somebody needs it
  bool keep_ = false;
};

}  // namespace tailtrace
