// HostFiles: the debugger reads files where the program runs, through `vFile` packets. Reading
// only: nothing is written, removed or made. Some files are not the system's: what they contain is
// made when they are opened; nor is what some links lead to.
//
// Threading: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "decoder/base/file.h"

namespace tailtrace {

class HostFiles {
 public:
  // What a file contains, or a link leads to, that we make; nothing for the system's own.
  using Made = std::function<std::optional<std::string>(const std::string& path)>;
  HostFiles(Made made_file, Made made_link)
      : made_file_(std::move(made_file)), made_link_(std::move(made_link)) {}

  // The answer to a packet that begins with `vFile:`.
  std::string answer(std::string_view packet);

 private:
  static constexpr std::size_t kMaxOpen = 64;

  std::string open(std::string_view arguments);
  std::string read(std::string_view arguments);
  std::string status(std::string_view arguments);
  std::string close(std::string_view arguments);
  std::string read_link(std::string_view arguments);

  Made made_file_, made_link_;
  std::map<std::uint64_t, UniqueFd> open_;
  std::uint64_t next_ = 1;
};

}  // namespace tailtrace
