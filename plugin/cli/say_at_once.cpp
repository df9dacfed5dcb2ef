#include "plugin/cli/say_at_once.h"

#include <fmt/format.h>
#include <limits.h>
#include <poll.h>

namespace tailtrace {
namespace {

// A pipe that can be written to takes so many bytes at once (pipe(7)).
constexpr std::size_t kMaxLine_bytes = PIPE_BUF - 1;

}  // namespace

void say_at_once(std::FILE* out, std::string_view line) {
  pollfd polled{::fileno(out), POLLOUT, 0};
  if (::poll(&polled, 1, 0) == 0) return;
  const std::string text = fmt::format("{}\n", line.substr(0, kMaxLine_bytes));
  std::fwrite(text.data(), 1, text.size(), out);
  std::fflush(out);
}

}  // namespace tailtrace
