#include "plugin/server/qemu/host_files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <vector>

#include "plugin/server/rsp/frame.h"

namespace tailtrace {
namespace {

// Of the File-I/O extension (GDB manual, "Errno Values", "Protocol-specific Representation").
constexpr int kInvalid = 22, kReadOnlySystem = 30, kTooManyFiles = 24, kUnknown = 9999;
constexpr std::uint64_t kOpenWriteBits = 0x3 | 0x8 | 0x200 | 0x400;
constexpr std::size_t kMaxRead_bytes = 1 << 14;

std::string failed(int error) {
  // The numbers that both sides have in common; the rest is unknown to the protocol.
  switch (error) {
    case EPERM:
    case ENOENT:
    case EINTR:
    case EBADF:
    case EACCES:
    case EFAULT:
    case EBUSY:
    case EEXIST:
    case ENODEV:
    case ENOTDIR:
    case EISDIR:
    case EINVAL:
    case ENFILE:
    case EMFILE:
    case EFBIG:
    case ENOSPC:
    case ESPIPE:
    case EROFS:
      return fmt::format("F-1,{:x}", error);
    case ENAMETOOLONG:
      return fmt::format("F-1,{:x}", 91);
    default:
      return fmt::format("F-1,{:x}", kUnknown);
  }
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t end; (end = text.find(',')) != std::string_view::npos;
       text.remove_prefix(end + 1))
    parts.push_back(text.substr(0, end));
  parts.push_back(text);
  return parts;
}

std::optional<std::string> path_of(std::string_view digits) {
  auto bytes = from_hex(digits);
  if (!bytes) return std::nullopt;
  std::string path(as_text(*bytes));
  if (path.find('\0') != std::string::npos) return std::nullopt;
  return path;
}

template <class T>
void put_big_endian(std::string& out, T value) {
  for (int shift = 8 * (static_cast<int>(sizeof value) - 1); shift >= 0; shift -= 8)
    out += static_cast<char>(static_cast<std::uint64_t>(value) >> shift);
}

// struct stat as the protocol has it, 64 bytes.
std::string protocol_stat(const struct stat& info) {
  std::string out;
  put_big_endian(out, static_cast<std::uint32_t>(info.st_dev));
  put_big_endian(out, static_cast<std::uint32_t>(info.st_ino));
  put_big_endian(out, static_cast<std::uint32_t>(info.st_mode));
  put_big_endian(out, static_cast<std::uint32_t>(info.st_nlink));
  put_big_endian(out, static_cast<std::uint32_t>(info.st_uid));
  put_big_endian(out, static_cast<std::uint32_t>(info.st_gid));
  put_big_endian(out, static_cast<std::uint32_t>(info.st_rdev));
  put_big_endian(out, static_cast<std::uint64_t>(info.st_size));
  put_big_endian(out, static_cast<std::uint64_t>(info.st_blksize));
  put_big_endian(out, static_cast<std::uint64_t>(info.st_blocks));
  for (time_t time : {info.st_atime, info.st_mtime, info.st_ctime})
    put_big_endian(out, static_cast<std::uint32_t>(time));
  return out;
}

UniqueFd open_made(std::string_view content) {
  UniqueFd fd(::memfd_create("tailtrace", MFD_CLOEXEC));
  if (fd && !write_all(fd.get(), as_bytes(content), "a file in memory")) return {};
  return fd;
}

std::string with_data(std::string_view data) {
  return fmt::format("F{:x};", data.size()) + rsp::escape(data);
}

}  // namespace

std::string HostFiles::answer(std::string_view packet) {
  packet.remove_prefix(std::string_view("vFile:").size());
  std::size_t colon = std::min(packet.find(':'), packet.size());
  std::string_view what = packet.substr(0, colon);
  std::string_view arguments = packet.substr(std::min(colon + 1, packet.size()));
  if (what == "setfs") return "F0";  // all programs see the files that we see
  if (what == "open") return open(arguments);
  if (what == "pread") return read(arguments);
  if (what == "fstat") return status(arguments);
  if (what == "close") return close(arguments);
  if (what == "readlink") return read_link(arguments);
  if (what == "pwrite" || what == "unlink") return fmt::format("F-1,{:x}", kReadOnlySystem);
  return {};
}

// `HEXPATH,flags,mode`
std::string HostFiles::open(std::string_view arguments) {
  auto parts = split(arguments);
  auto path = path_of(parts[0]);
  auto flags = parts.size() == 3 ? parse_hex(parts[1]) : std::nullopt;
  if (!path || !flags) return fmt::format("F-1,{:x}", kInvalid);
  if ((*flags & kOpenWriteBits) != 0) return fmt::format("F-1,{:x}", kReadOnlySystem);
  if (open_.size() >= kMaxOpen) return fmt::format("F-1,{:x}", kTooManyFiles);
  auto made = made_file_(*path);
  UniqueFd fd =
      made ? open_made(*made) : UniqueFd(::open(path->c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return failed(errno);
  open_.emplace(next_, std::move(fd));
  return fmt::format("F{:x}", next_++);
}

// `fd,count,offset`
std::string HostFiles::read(std::string_view arguments) {
  auto parts = split(arguments);
  if (parts.size() != 3) return failed(EINVAL);
  auto fd = parse_hex(parts[0]), count = parse_hex(parts[1]), offset = parse_hex(parts[2]);
  if (!fd || !count || !offset) return failed(EINVAL);
  auto file = open_.find(*fd);
  if (file == open_.end()) return failed(EBADF);
  std::string data(std::min<std::uint64_t>(*count, kMaxRead_bytes), '\0');
  ssize_t n = ::pread(file->second.get(), data.data(), data.size(), static_cast<off_t>(*offset));
  if (n < 0) return failed(errno);
  data.resize(static_cast<std::size_t>(n));
  return with_data(data);
}

std::string HostFiles::status(std::string_view arguments) {
  auto fd = parse_hex(arguments);
  auto file = fd ? open_.find(*fd) : open_.end();
  struct stat info;
  if (file == open_.end()) return failed(EBADF);
  if (::fstat(file->second.get(), &info) != 0) return failed(errno);
  return with_data(protocol_stat(info));
}

std::string HostFiles::close(std::string_view arguments) {
  auto fd = parse_hex(arguments);
  return fd && open_.erase(*fd) != 0 ? "F0" : failed(EBADF);
}

std::string HostFiles::read_link(std::string_view arguments) {
  auto path = path_of(arguments);
  if (!path) return failed(EINVAL);
  if (auto made = made_link_(*path)) return with_data(*made);
  char target[4096];
  ssize_t n = ::readlink(path->c_str(), target, sizeof target);
  if (n < 0) return failed(errno);
  return with_data({target, static_cast<std::size_t>(n)});
}

}  // namespace tailtrace
