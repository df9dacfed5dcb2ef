// HostFiles: the debugger reads files where the program runs, through `vFile` packets. Reading
// only: nothing is written, removed or made.
//
// Threading: one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "decoder/base/file.h"

namespace tailtrace {

class HostFiles {
 public:
  // The answer to a packet that begins with `vFile:`.
  std::string answer(std::string_view packet);

 private:
  static constexpr std::size_t kMaxOpen = 64;

  std::string open(std::string_view arguments);
  std::string read(std::string_view arguments);
  std::string status(std::string_view arguments);
  std::string close(std::string_view arguments);
  std::string read_link(std::string_view arguments);

  std::map<std::uint64_t, UniqueFd> open_;
  std::uint64_t next_ = 1;
};

}  // namespace tailtrace
