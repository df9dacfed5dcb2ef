#include "python/core/standing_process.h"

#include <dirent.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <memory>

#include "decoder/base/file.h"

namespace tailtrace::python {
namespace {

constexpr int kPatience_ms = 10'000;

// 'R', 'S', 'T', ...; 0 when the thread is not there.
char state_of(const std::string& task) {
  Result<Bytes> text = read_file(task + "/stat", 4096);
  if (!text) return 0;
  // The name before it may have any character in it, brackets too.
  std::string_view stat = as_text(*text);
  std::size_t end = stat.rfind(')');
  return end == std::string_view::npos || end + 2 >= stat.size() ? 0 : stat[end + 2];
}

// Whether a thread can execute anything: it stands, for job control or a tracer, or has ended.
bool stands(char state) {
  return state == 'T' || state == 't' || state == 'Z' || state == 'X' || state == 0;
}

bool all_stand(pid_t pid) {
  std::string folder = fmt::format("/proc/{}/task", pid);
  std::unique_ptr<DIR, int (*)(DIR*)> tasks(::opendir(folder.c_str()), ::closedir);
  if (!tasks) return true;
  while (dirent* entry = ::readdir(tasks.get()))
    if (entry->d_name[0] != '.' && !stands(state_of(folder + "/" + entry->d_name))) return false;
  return true;
}

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
