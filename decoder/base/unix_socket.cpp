#include "decoder/base/unix_socket.h"

#include <fmt/core.h>
#include <sys/socket.h>

#include <cstring>

namespace tailtrace {

std::optional<sockaddr_un> unix_address(const std::string& path) {
  if (path.empty() || path.size() > kMaxUnixPath_bytes) return std::nullopt;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Result<UniqueFd> connect_unix(const std::string& path) {
  const auto address = unix_address(path);
  if (!address)
    return fail(ErrorCode::kUsage, "cannot connect to " + path,
                fmt::format("the name of a socket has at most {} letters", kMaxUnixPath_bytes),
                "name a folder with a shorter path with TAILTRACE_SESSIONS");
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return fail(system_error("cannot make a socket"));
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0)
    return fail(system_error("cannot connect to " + path));
  return fd;
}

}  // namespace tailtrace
