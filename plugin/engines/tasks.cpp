#include "plugin/engines/tasks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>

#include "decoder/base/file.h"

namespace tailtrace {
namespace {

constexpr std::size_t kMaxName_bytes = 64, kMaxStat_bytes = 4096;

// PF_EXITING is the kernel's (include/linux/sched.h).
bool is_exiting(ThreadId thread) {
  constexpr std::uint64_t kExiting = 4;
  constexpr std::size_t kFlags = 6;
  const std::vector<std::string> fields = stat_behind_name(thread);
  return fields.size() <= kFlags || (std::strtoull(fields[kFlags].c_str(), nullptr, 10) & kExiting);
}

}  // namespace

std::vector<ThreadId> threads_of(const std::string& root, std::int32_t pid) {
  std::vector<ThreadId> threads;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(fmt::format("{}/proc/{}/task", root, pid), error),
       end;
       !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename().string();
    ThreadId thread{pid, 0};
    auto [stop, failed] = std::from_chars(name.data(), name.data() + name.size(), thread.tid);
    if (failed == std::errc() && stop == name.data() + name.size()) threads.push_back(thread);
  }
  return threads;
}

bool is_thread_of(std::int32_t pid, std::int32_t tid) {
  return ::access(fmt::format("/proc/{}/task/{}", pid, tid).c_str(), F_OK) == 0;
}

bool is_ending(std::int32_t pid) { return std::ranges::all_of(threads_of("", pid), is_exiting); }

// `TID (NAME) STATE PPID ...`; the name may hold anything.
std::vector<std::string> stat_behind_name(ThreadId thread) {
  auto text =
      read_file(fmt::format("/proc/{}/task/{}/stat", thread.pid, thread.tid), kMaxStat_bytes);
  if (!text) return {};
  std::istringstream words(std::string(as_text(*text).substr(as_text(*text).rfind(')') + 1)));
  return {std::istream_iterator<std::string>(words), {}};
}

std::string name_of(const std::string& root, ThreadId thread) {
  auto text = read_file(fmt::format("{}/proc/{}/task/{}/comm", root, thread.pid, thread.tid),
                        kMaxName_bytes);
  if (!text) return {};
  std::string name(as_text(*text));
  name.erase(std::min(name.find('\n'), name.size()));
  return name;
}

}  // namespace tailtrace
