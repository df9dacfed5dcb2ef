#include "decoder/bundle/lldb_history.h"

#include <sys/stat.h>

#include "decoder/base/file.h"
#include "decoder/code/elf_code.h"
#include "decoder/pt/record_sink.h"

namespace tailtrace {
namespace {

// Like MappedFile::open, but an empty file is an empty trace.
Result<MappedFile> open_trace(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size == 0)
    return MappedFile();
  return MappedFile::open(path);
}

std::shared_ptr<CodeImage> code_of(const LldbBundle& bundle, const LldbProcess& process,
                                   std::vector<Error>& problems) {
  auto image = std::make_shared<CodeImage>();
  for (const std::vector<LldbModule>* modules : {&bundle.kernel, &process.modules})
    for (const LldbModule& module : *modules)
      if (auto added = add_elf_code(*image, module.path, module.load_address); !added)
        problems.push_back(std::move(added.error()));
  return image;
}

}  // namespace

Result<LldbHistory> load_lldb_thread(const LldbBundle& bundle, const LldbProcess& process,
                                     const LldbThread& thread) {
  if (thread.trace_path.empty())
    return fail(ErrorCode::kBadInput,
                "cannot read the trace of thread " + std::to_string(thread.thread.tid),
                "it is kept by processor, together with those of other threads",
                "record it without per-cpu-tracing");
  Result<MappedFile> trace = open_trace(thread.trace_path);
  if (!trace) return fail(std::move(trace.error()));
  LldbHistory loaded;
  auto image = code_of(bundle, process, loaded.problems);
  pt::DecoderConfig config;
  config.cpu = bundle.cpu;
  config.errata = pt::errata_of(bundle.cpu);
  pt::RecordSink sink;
  pt::make_flow_decoder(*image, config)->decode(trace->bytes(), sink);
  sink.finish();
  auto snapshot = std::make_shared<ThreadSnapshot>();
  snapshot->thread = thread.thread;
  snapshot->engine = "pt";
  snapshot->records = sink.drain();
  snapshot->code = std::move(image);
  loaded.snapshot = std::move(snapshot);
  return loaded;
}

}  // namespace tailtrace
