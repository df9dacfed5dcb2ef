#include "decoder/bundle/lldb_history.h"

#include <sys/stat.h>

#include "decoder/base/file.h"
#include "decoder/code/elf_code.h"
#include "decoder/history/pt_segments.h"

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

Result<OpenedThread> open_lldb_thread(const LldbBundle& bundle, const LldbProcess& process,
                                      const LldbThread& thread) {
  if (thread.trace_path.empty())
    return fail(ErrorCode::kBadInput,
                "cannot read the trace of thread " + std::to_string(thread.thread.tid),
                "it is kept by processor, together with those of other threads",
                "record it without per-cpu-tracing");
  Result<MappedFile> mapped = open_trace(thread.trace_path);
  if (!mapped) return fail(std::move(mapped.error()));
  auto trace = std::make_shared<const MappedFile>(std::move(*mapped));
  OpenedThread opened;
  opened.frame.thread = thread.thread;
  opened.frame.engine = "pt";
  opened.frame.code = code_of(bundle, process, opened.problems);
  pt::DecoderConfig config;
  config.cpu = bundle.cpu;
  config.errata = pt::errata_of(bundle.cpu);
  opened.source =
      std::make_shared<PtSegments>(trace, trace->bytes(), opened.frame.code, std::move(config));
  return opened;
}

}  // namespace tailtrace
