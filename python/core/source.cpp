#include "python/core/source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "decoder/history/snapshot_file.h"
#include "decoder/record/stream_format.h"

namespace tailtrace::python {
namespace {

bool begins_with(const std::string& path, const char* magic, std::size_t size) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char begin[16] = {};
  return fd && ::read(fd.get(), begin, size) == static_cast<ssize_t>(size) &&
         std::memcmp(begin, magic, size) == 0;
}

// A stream is read whole: its chunks are packed.
Result<std::vector<ThreadSource>> open_stream(const std::string& path) {
  Result<LoadedSnapshot> loaded = load_snapshot(path);
  if (!loaded) return fail(std::move(loaded.error()));
  ThreadSource source;
  source.thread = loaded->snapshot->thread;
  source.engine = loaded->snapshot->engine;
  source.content = [content =
                        ThreadContent{loaded->snapshot, loaded->maps}]() -> Result<ThreadContent> {
    return content;
  };
  return std::vector<ThreadSource>{std::move(source)};
}

}  // namespace

Result<std::vector<ThreadSource>> open_sources(const std::string& path, const GivenCode& code) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return fail(system_error("cannot open " + path));
  if (S_ISDIR(info.st_mode)) return open_session(path);
  if (begins_with(path, kRingMagic, sizeof kRingMagic)) return open_ring(path, code);
  if (begins_with(path, kStreamMagic, sizeof kStreamMagic)) return open_stream(path);
  return fail(ErrorCode::kBadInput, "cannot open " + path,
              "it does not begin as anything that tailtrace writes",
              "give it a session's folder, a saved history or a ring");
}

}  // namespace tailtrace::python
