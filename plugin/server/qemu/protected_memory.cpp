#include "plugin/server/qemu/protected_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <optional>

#include "decoder/base/bytes.h"
#include "decoder/base/file.h"

namespace tailtrace {
namespace {

constexpr std::string_view kRefused = "E14";  // EFAULT, as the stub says it

struct Write {
  std::uint64_t address = 0;
  std::vector<std::uint8_t> bytes;
};

std::optional<Write> parse(std::string_view request) {
  std::size_t comma = request.find(','), colon = request.find(':');
  if (comma == std::string_view::npos || colon == std::string_view::npos || colon < comma)
    return std::nullopt;
  auto address = parse_hex(request.substr(1, comma - 1));
  auto size = parse_hex(request.substr(comma + 1, colon - comma - 1));
  auto bytes = from_hex(request.substr(colon + 1));
  if (!address || !size || !bytes || bytes->empty() || bytes->size() != *size) return std::nullopt;
  return Write{*address, {bytes->begin(), bytes->end()}};
}

// What the program sees there, in hexadecimal digits.
Result<std::string> seen(QemuInferior& inferior, ThreadId thread, const Write& write) {
  return inferior.ask_of(thread, fmt::format("m{:x},{:x}", write.address, write.bytes.size()));
}

bool put(int memory, std::uint64_t address, std::span<const std::uint8_t> bytes) {
  return ::pwrite(memory, bytes.data(), bytes.size(), static_cast<off_t>(address)) ==
         static_cast<ssize_t>(bytes.size());
}

}  // namespace

// The program's addresses are qemu's own unless qemu had to move the program. Whether they are is
// seen before and after, through the stub.
Result<std::string> write_protected(QemuInferior& inferior, ThreadId thread,
                                    std::string_view request) {
  auto write = parse(request);
  if (!write) return std::string(kRefused);
  UniqueFd memory(::open(fmt::format("/proc/{}/mem", inferior.pid()).c_str(), O_RDWR | O_CLOEXEC));
  std::vector<std::uint8_t> before(write->bytes.size());
  if (!memory || ::pread(memory.get(), before.data(), before.size(),
                         static_cast<off_t>(write->address)) != static_cast<ssize_t>(before.size()))
    return std::string(kRefused);
  auto old = seen(inferior, thread, *write);
  if (!old) return old;
  if (*old != to_hex(before)) return std::string(kRefused);
  if (!put(memory.get(), write->address, write->bytes)) return std::string(kRefused);
  auto now = seen(inferior, thread, *write);
  if (!now) return now;
  if (*now != to_hex(write->bytes)) {
    (void)put(memory.get(), write->address, before);
    return std::string(kRefused);
  }
  // qemu may have translated what stood there; a breakpoint makes it translate anew.
  for (char letter : {'Z', 'z'}) {
    auto done = inferior.ask_of(thread, fmt::format("{}0,{:x},1", letter, write->address));
    if (!done) return done;
  }
  return std::string("OK");
}

}  // namespace tailtrace
