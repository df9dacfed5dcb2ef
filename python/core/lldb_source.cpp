#include "decoder/bundle/lldb_history.h"
#include "python/core/source.h"

namespace tailtrace::python {

Result<std::vector<ThreadSource>> open_lldb_bundle(const std::string& path) {
  auto recording = LldbRecording::open(path);
  if (!recording) return fail(std::move(recording.error()));
  std::vector<ThreadSource> sources;
  for (ThreadId thread : (*recording)->threads()) {
    ThreadSource source;
    source.thread = thread;
    source.engine = "pt";
    source.content = [recording = *recording, thread] { return recording->open_thread(thread); };
    sources.push_back(std::move(source));
  }
  if (sources.empty())
    return fail(ErrorCode::kBadInput, "cannot open " + path, "the bundle has no thread");
  return sources;
}

}  // namespace tailtrace::python
