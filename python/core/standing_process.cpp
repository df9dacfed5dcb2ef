#include "python/core/standing_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>

#include "plugin/engines/tasks.h"

namespace tailtrace::python {
namespace {

constexpr int kPatience_ms = 10'000;

// Whether a thread cannot execute anything: it stands, for job control or a tracer, or has ended.
bool stands(ThreadId thread) {
  const std::vector<std::string> fields = stat_behind_name(thread);
  return fields.empty() || std::string_view("TtZX").find(fields.front()) != std::string_view::npos;
}

bool all_stand(pid_t pid) { return std::ranges::all_of(threads_of("", pid), stands); }

}  // namespace

Result<StandingProcess> StandingProcess::stop(pid_t pid) {
  StandingProcess process(pid);
  if (all_stand(pid) && ::kill(pid, 0) == 0) return process;
  if (::kill(pid, SIGSTOP) != 0)
    return fail(system_error(fmt::format("cannot stop process {}", pid)));
  process.resume_ = true;
  for (int waited_ms = 0; !all_stand(pid); ++waited_ms) {
    if (waited_ms == kPatience_ms)
      return fail(ErrorCode::kSystem, fmt::format("cannot stop process {}", pid),
                  "one of its threads does not come out of the kernel");
    ::poll(nullptr, 0, 1);
  }
  return process;
}

StandingProcess::~StandingProcess() {
  if (resume_) ::kill(pid_, SIGCONT);
}

}  // namespace tailtrace::python
