// SourceTexts: the lines of source files, each read once when a line of it is asked for. Files that
// are not here, or are no text of a sensible size, have none; nor have pipes and devices, which
// debug information may name as well.
//
// Threading: one thread at a time.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tailtrace {

class SourceTexts {
 public:
  static constexpr std::size_t kMaxFile_bytes = 16 << 20;
  static constexpr std::size_t kMaxFiles = 256;

  // Without control characters; tabs are blanks. Empty when it cannot be read. The reference lives
  // until the next call.
  const std::vector<std::string>& lines(const std::string& path);

 private:
  std::map<std::string, std::vector<std::string>> files_;
};

}  // namespace tailtrace
