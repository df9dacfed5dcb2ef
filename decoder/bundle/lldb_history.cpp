#include "decoder/bundle/lldb_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "decoder/bundle/trace_file.h"
#include "decoder/code/elf_code.h"
#include "decoder/symbols/elf_file.h"
#include "decoder/symbols/mapping.h"

namespace tailtrace {
namespace {

// LLDB's UUID of a file with a build id is that, in groups.
std::string digits_of(std::string_view uuid) {
  std::string digits;
  for (char c : uuid)
    if (c != '-') digits += static_cast<char>(c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);
  return digits;
}

// Of a file without a build id LLDB makes a short one of its own.
constexpr std::size_t kShortUuid_digits = 8;

void check_build_id(const LldbModule& module, std::vector<Error>& problems) {
  const std::string recorded = digits_of(module.uuid);
  if (recorded.size() <= kShortUuid_digits) return;
  Result<ElfFile> file = ElfFile::open(module.path);
  if (!file || file->build_id() == recorded) return;
  std::string now = file->build_id();
  problems.push_back({ErrorCode::kBadInput, module.path + " is not the file that was executed",
                      fmt::format("its build id is {}, that of the recorded one {}",
                                  now.empty() ? "missing" : now, recorded),
                      fmt::format("put the recorded {} there", module.system_path), ""});
}

}  // namespace

Result<std::shared_ptr<const LldbRecording>> LldbRecording::open(const std::string& path) {
  Result<LldbBundle> bundle = read_lldb_bundle(path);
  if (!bundle) return fail(std::move(bundle.error()));
  auto made = std::make_shared<LldbRecording>();
  made->bundle_ = std::move(*bundle);
  for (const LldbProcess& process : made->bundle_.processes)
    for (const LldbThread& thread : process.threads) made->threads_.push_back(thread.thread);
  if (made->bundle_.kernel)
    for (const LldbCpu& cpu : made->bundle_.cpus)
      made->threads_.push_back({kLldbKernelPid, static_cast<std::int32_t>(cpu.id)});
  else if (Result<void> used = made->use_cpus(); !used)
    return fail(std::move(used.error()));
  return std::shared_ptr<const LldbRecording>(std::move(made));
}

Result<void> LldbRecording::use_cpus() {
  if (bundle_.cpus.empty()) return {};
  Result<CpuTraces> cpus = CpuTraces::open(bundle_.cpus, *bundle_.clock);
  if (!cpus) return fail(std::move(cpus.error()));
  cpus_.emplace(std::move(*cpus));
  std::set<ThreadId> known(threads_.begin(), threads_.end());
  std::set<std::int32_t> pids;
  for (const LldbProcess& process : bundle_.processes) pids.insert(process.pid);
  for (ThreadId thread : cpus_->threads())
    if (pids.contains(thread.pid) && known.insert(thread).second) threads_.push_back(thread);
  return {};
}

Result<OpenedThread> LldbRecording::open_thread(ThreadId wanted) const {
  auto is_known = std::ranges::find(threads_, wanted) != threads_.end();
  if (!is_known)
    return fail(ErrorCode::kUsage, fmt::format("there is no thread {}.{}", wanted.pid, wanted.tid),
                "the bundle does not name it");
  auto found = [&]() -> Result<OpenedThread> {
    if (bundle_.kernel) return open_kernel(wanted.tid);
    auto process = std::ranges::find(bundle_.processes, wanted.pid, &LldbProcess::pid);
    if (cpus_) return open_by_cpu(*process, wanted.tid);
    auto thread = std::ranges::find(process->threads, wanted, &LldbThread::thread);
    if (thread->trace_path.empty())
      return fail(ErrorCode::kBadInput,
                  fmt::format("cannot read the trace of thread {}", wanted.tid),
                  "the bundle has none of it");
    return open_by_thread(*process, thread->trace_path);
  }();
  if (found) found->frame.thread = wanted;
  return found;
}

Result<OpenedThread> LldbRecording::open_by_thread(const LldbProcess& process,
                                                   const std::string& path) const {
  Result<MappedFile> mapped = open_trace(path);
  if (!mapped) return fail(std::move(mapped.error()));
  auto trace = std::make_shared<const MappedFile>(std::move(*mapped));
  return opened(process.modules, trace, trace->bytes(), {});
}

OpenedThread LldbRecording::open_by_cpu(const LldbProcess& process, std::int32_t tid) const {
  auto trace = std::make_shared<const ThreadTrace>(cpus_->of_thread(tid));
  OpenedThread thread = opened(process.modules, trace, trace->bytes, trace->joints);
  std::ranges::move(cpus_->problems_of(*trace, tid), std::back_inserter(thread.problems));
  return thread;
}

Result<OpenedThread> LldbRecording::open_kernel(std::int32_t cpu) const {
  auto found = std::ranges::find(bundle_.cpus, static_cast<std::uint32_t>(cpu), &LldbCpu::id);
  Result<MappedFile> mapped = open_trace(found->trace_path);
  if (!mapped) return fail(std::move(mapped.error()));
  auto trace = std::make_shared<const MappedFile>(std::move(*mapped));
  return opened({&*bundle_.kernel, 1}, trace, trace->bytes(), {});
}

OpenedThread LldbRecording::opened(std::span<const LldbModule> modules,
                                   std::shared_ptr<const void> owner, ByteSpan trace,
                                   std::vector<PtJoint> joints) const {
  OpenedThread thread;
  auto image = std::make_shared<CodeImage>();
  for (const LldbModule& module : modules) {
    if (auto added = add_elf_code(*image, module.path, module.load_address); !added)
      thread.problems.push_back(std::move(added.error()));
    check_build_id(module, thread.problems);
    thread.maps += maps_of_module(module.path, module.load_address);
  }
  thread.frame.engine = "pt";
  thread.frame.code = image;
  pt::DecoderConfig config;
  config.cpu = bundle_.cpu;
  config.errata = pt::errata_of(bundle_.cpu);
  PtSegmentsOptions options;
  options.joints = std::move(joints);
  options.clock = bundle_.clock;
  thread.source = std::make_shared<PtSegments>(std::move(owner), trace, image, std::move(config),
                                               std::move(options));
  return thread;
}

}  // namespace tailtrace
