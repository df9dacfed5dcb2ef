#include "decoder/bundle/trace_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>

namespace tailtrace {
namespace {

Result<MappedFile> read_pipe(const std::string& path) {
  UniqueFd pipe(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!pipe) return fail(system_error("cannot open " + path));
  UniqueFd kept(::memfd_create("pipe", MFD_CLOEXEC));
  if (!kept) return fail(system_error("cannot keep what is read from " + path));
  constexpr std::size_t kAtOnce_bytes = 1u << 20;
  for (;;) {
    const ssize_t n = ::splice(pipe.get(), nullptr, kept.get(), nullptr, kAtOnce_bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(system_error("cannot read " + path));
    if (n == 0) return open_trace("/proc/self/fd/" + std::to_string(kept.get()));
  }
}

bool is_pipe(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISFIFO(info.st_mode);
}

}  // namespace

Result<MappedFile> open_trace(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size == 0)
    return MappedFile();
  return MappedFile::open_finished(path);
}

Result<MappedFile> open_named_file(const std::string& path) {
  return is_pipe(path) ? read_pipe(path) : open_trace(path);
}

}  // namespace tailtrace
