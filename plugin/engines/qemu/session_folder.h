// SessionFolder: the folder, private to the user, in which recordings of one run are kept while it
// lasts. It goes away with the object unless it is kept. Folders of processes that were killed go
// away when the next one is made in the same place.
//
// Threading: one thread at a time.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "decoder/base/file.h"
#include "decoder/base/result.h"

namespace tailtrace {

class SessionFolder {
 public:
  // Makes one in `parent`; if that is empty in $TAILTRACE_SESSIONS, else $XDG_RUNTIME_DIR, else
  // /dev/shm, else /tmp. Errors: the folder cannot be made.
  static Result<SessionFolder> make(const std::string& parent);

  // Makes one with this path, and its parents. Errors: it exists; it cannot be made.
  static Result<SessionFolder> make_at(const std::string& path);

  SessionFolder(SessionFolder&& other) noexcept
      : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)), keep_(other.keep_) {}
  SessionFolder& operator=(SessionFolder&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(lock_, other.lock_);
    std::swap(keep_, other.keep_);
    return *this;
  }
  ~SessionFolder();

  const std::string& path() const { return path_; }
  void keep() { keep_ = true; }

 private:
  explicit SessionFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
  UniqueFd lock_;  // of the folder, as long as somebody needs it
  bool keep_ = false;
};

// The folders of the recorded processes of a session, PID.N each, in order of appearance.
Result<std::vector<std::string>> process_folders(const std::string& session);

// Keeps copies of the perf maps (decoder/symbols/JIT.md) of processes that have ended, which their
// numbers alone will not tell from those of later ones. Names are a help and no more: what cannot
// be kept is left alone.
void keep_perf_maps(const std::string& session);

// The folder of one process's program, whether or not it exists.
std::string process_folder_path(const std::string& session, int pid, unsigned program_index);

}  // namespace tailtrace
