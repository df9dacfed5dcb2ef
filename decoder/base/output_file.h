// OutputFile: a file that is whole at its place, or not there. It is written without a name, so
// that nothing is left of one whose writer is killed, and put at its place at the end; where a file
// system has no such files, it has a name of its own beside its place meanwhile. A device, a pipe
// or a link is written to as it stands.
//
// Threading: one thread at a time.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "decoder/base/file.h"
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
        older_(other.older_),
        part_(std::move(other.part_)),
        has_name_(std::exchange(other.has_name_, false)),
        file_(std::move(other.file_)) {}
  // What is not finished is removed.
  ~OutputFile();

  std::FILE* file() const { return file_.get(); }
  // Puts it at its place. Errors: what was written last did not arrive; kUsage: one that stays came
  // there meanwhile. REQUIRES: all else did.
  Result<void> finish();
  // That it cannot be written.
  Error error(int error_number = errno) const;

 private:
  OutputFile(std::string path, OlderFile older) : path_(std::move(path)), older_(older) {}
  // Nothing: errno says why.
  UniqueFd open_beside();
  // Whether it has it; else errno says why not.
  bool give_name();

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  OlderFile older_;
  std::string part_;       // its name until it is at its place; empty: it is written there
  bool has_name_ = false;  // that one
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace tailtrace
