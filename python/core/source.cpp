#include "python/core/source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "decoder/bundle/bundle.h"
#include "decoder/history/snapshot_file.h"
#include "decoder/perf_data/recording.h"
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
  std::shared_ptr<const ThreadSnapshot> snapshot = loaded->snapshot;
  source.records = [snapshot]() -> Result<RecordSpan> {
    return RecordSpan{snapshot, snapshot->records, snapshot->first};
  };
  source.content = [opened = opened_thread(std::move(*loaded))]() -> Result<OpenedThread> {
    return opened;
  };
  return std::vector<ThreadSource>{std::move(source)};
}

Result<RecordSpan> span_of(const BundleThread& thread) {
  Result<BundleRecords> mapped = map_records(thread);
  if (!mapped) return fail(std::move(mapped.error()));
  Result<Position> first = first_position(thread);
  if (!first) return fail(std::move(first.error()));
  return RecordSpan{std::move(mapped->owner), mapped->records, *first};
}

Result<std::vector<ThreadSource>> open_folder(const std::string& path) {
  if (is_bundle(path)) return open_bundle(path);
  std::string lldbs = path + "/trace.json";
  return ::access(lldbs.c_str(), F_OK) == 0 ? open_lldb_bundle(lldbs) : open_session(path);
}

Result<std::vector<ThreadSource>> open_perf_data(const std::string& path) {
  auto recording = perf::PerfRecording::open(path);
  if (!recording) return fail(std::move(recording.error()));
  std::vector<ThreadSource> sources;
  for (const perf::PerfRecording::Thread& thread : (*recording)->threads()) {
    ThreadSource source;
    source.thread = thread.thread;
    source.engine = thread.engine;
    source.content = [recording = *recording, id = thread.thread] {
      return recording->open_thread(id);
    };
    sources.push_back(std::move(source));
  }
  return sources;
}

}  // namespace

Result<std::vector<ThreadSource>> open_bundle(const std::string& path) {
  Result<Bundle> bundle = read_bundle(path);
  if (!bundle) return fail(std::move(bundle.error()));
  std::vector<ThreadSource> sources;
  for (const BundleThread& thread : bundle->threads) {
    ThreadSource source;
    source.thread = thread.thread;
    source.engine = thread.engine;
    source.saved = std::make_shared<const BundleThread>(thread);
    source.content = [thread] { return open_thread(thread); };
    source.records = [thread] { return span_of(thread); };
    sources.push_back(std::move(source));
  }
  return sources;
}

Result<std::vector<ThreadSource>> open_sources(const std::string& path, const GivenCode& code) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0)
    return fail(errno == ENOENT ? missing_recording(path) : system_error("cannot open " + path));
  if (S_ISDIR(info.st_mode)) return open_folder(path);
  if (begins_with(path, kRingMagic, sizeof kRingMagic)) return open_ring(path, code);
  if (begins_with(path, kStreamMagic, sizeof kStreamMagic)) return open_stream(path);
  if (begins_with(path, perf::kPerfDataMagic.data(), perf::kPerfDataMagic.size()))
    return open_perf_data(path);
  if (begins_with(path, "{", 1)) return open_lldb_bundle(path);
  return fail(ErrorCode::kBadInput, "cannot open " + path,
              "it does not begin as anything that tailtrace writes",
              "give it a session's folder, a bundle, a saved history, a ring or a perf.data");
}

}  // namespace tailtrace::python
