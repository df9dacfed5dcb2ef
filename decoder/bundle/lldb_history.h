// Histories out of LLDB's trace bundles: the raw trace of a thread, decoded when it is asked for.
//
// LLDB keeps traces by thread or by processor. Of those by processor, a thread's part is found by
// the context switches (cpu_traces.h). Where a kernel was traced, its processors stand for threads.
//
// Threading: immutable once made; share it freely.
#pragma once

#include <memory>

#include "decoder/bundle/cpu_traces.h"
#include "decoder/bundle/lldb_bundle.h"
#include "decoder/history/opened_thread.h"

namespace tailtrace {

// The process that LLDB makes up for a kernel; its threads have the numbers of processors.
constexpr std::int32_t kLldbKernelPid = 1;

class LldbRecording {
 public:
  // Of the file that describes a bundle. Errors: as read_lldb_bundle; context switches or the
  // traces of processors cannot be read.
  static Result<std::shared_ptr<const LldbRecording>> open(const std::string& path);

  // Those that the bundle names, then others of its processes that were executed.
  const std::vector<ThreadId>& threads() const { return threads_; }

  // Errors: kUsage for a thread that is not among them; kBadInput when nothing was traced of it;
  // its trace cannot be read. A module that cannot be read, or is not the one that was executed,
  // is a problem only.
  Result<OpenedThread> open_thread(ThreadId thread) const;

 private:
  Result<void> use_cpus();
  Result<OpenedThread> open_by_thread(const LldbProcess& process, const std::string& path) const;
  OpenedThread open_by_cpu(const LldbProcess& process, std::int32_t tid) const;
  Result<OpenedThread> open_kernel(std::int32_t cpu) const;
  OpenedThread opened(std::span<const LldbModule> modules, std::shared_ptr<const void> owner,
                      ByteSpan trace, std::vector<PtJoint> joints) const;

  LldbBundle bundle_;
  std::vector<ThreadId> threads_;
  std::optional<CpuTraces> cpus_;
};

}  // namespace tailtrace
