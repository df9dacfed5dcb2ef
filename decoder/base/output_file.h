// OutputFile: a file that is whole at its place, or not there. It is written beside its place and
// moved there at the end; a device, a pipe or a link is written to as it stands.
//
// Threading: one thread at a time.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "decoder/base/result.h"

namespace tailtrace {

// What becomes of a file that is there already.
enum class OlderFile { kStays, kIsReplaced };

class OutputFile {
 public:
  // Only its user can read it. Errors: it cannot be made; kUsage: an older one is there and stays.
  static Result<OutputFile> open(const std::string& path, OlderFile older);

  OutputFile(OutputFile&& other) noexcept
      : path_(std::move(other.path_)),
        part_(std::exchange(other.part_, {})),
        file_(std::move(other.file_)) {}
  // What is not finished is removed.
  ~OutputFile();

  std::FILE* file() const { return file_.get(); }
  // Puts it at its place. Errors: what was written last did not arrive. REQUIRES: all else did.
  Result<void> finish();
  // That it cannot be written.
  Error error(int error_number = errno) const;

 private:
  explicit OutputFile(std::string path) : path_(std::move(path)) {}

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::string part_;  // what is there until it is finished; empty: it is written in its place
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace tailtrace
