#include "decoder/bundle/lldb_history.h"
#include "decoder/symbols/mapping.h"
#include "python/core/source.h"

namespace tailtrace::python {
namespace {

Result<OpenedThread> content_of(const LldbBundle& bundle, const LldbProcess& process,
                                const LldbThread& thread) {
  Result<OpenedThread> opened = open_lldb_thread(bundle, process, thread);
  if (!opened) return opened;
  for (const LldbModule& module : process.modules)
    opened->maps += maps_of_module(module.path, module.load_address);
  return opened;
}

}  // namespace

Result<std::vector<ThreadSource>> open_lldb_bundle(const std::string& path) {
  Result<LldbBundle> read = read_lldb_bundle(path);
  if (!read) return fail(std::move(read.error()));
  auto bundle = std::make_shared<const LldbBundle>(std::move(*read));
  std::vector<ThreadSource> sources;
  for (const LldbProcess& process : bundle->processes)
    for (const LldbThread& thread : process.threads) {
      ThreadSource source;
      source.thread = thread.thread;
      source.engine = "pt";
      source.content = [bundle, &process, &thread] { return content_of(*bundle, process, thread); };
      sources.push_back(std::move(source));
    }
  if (sources.empty())
    return fail(ErrorCode::kBadInput, "cannot open " + path, "the bundle has no thread");
  return sources;
}

}  // namespace tailtrace::python
