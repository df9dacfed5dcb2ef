// Sockets of this machine that have a path.
//
// Threading: any.
#pragma once

#include <sys/un.h>

#include <optional>
#include <string>

#include "decoder/base/file.h"
#include "decoder/base/result.h"

namespace tailtrace {

// What a path may have: it is stored with a NUL behind it (unix(7)).
inline constexpr std::size_t kMaxUnixPath_bytes = sizeof(sockaddr_un::sun_path) - 1;

// Nothing if the path is empty or too long.
std::optional<sockaddr_un> unix_address(const std::string& path);

// Connects to who listens there. Errors: kUsage for a path that is too long; kSystem.
Result<UniqueFd> connect_unix(const std::string& path);

}  // namespace tailtrace
