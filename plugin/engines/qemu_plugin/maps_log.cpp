#include "plugin/engines/qemu_plugin/maps_log.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "decoder/code/former_maps.h"
#include "decoder/code/maps_line.h"
#include "plugin/engines/qemu/session_format.h"
#include "plugin/engines/qemu_plugin/build_id.h"
#include "plugin/engines/qemu_plugin/recorder.h"
#include "plugin/engines/qemu_plugin/shared_file.h"

namespace tailtrace {
namespace {

constexpr std::size_t kMaxMaps_bytes = 1 << 20;

std::atomic<bool> g_stale{true};
std::atomic<int> g_kept_pid{0};  // another one after a fork
thread_local bool t_unmaps_code = false;
std::vector<FormerMaps::Range> g_own;

// Whether it is a part of what is qemu's own.
bool is_own(const MapsLine& line) {
  return std::any_of(g_own.begin(), g_own.end(), [&](const FormerMaps::Range& own) {
    return line.begin >= own.begin.value && line.end <= own.end.value;
  });
}

// One line with the guest's addresses; nothing when no file is mapped there.
std::string guest_line(std::string_view line, const MapsLine& parsed, std::uint64_t guest_base) {
  if (!parsed.has_file() || parsed.begin < guest_base || is_own(parsed)) return {};
  char range[64];
  std::snprintf(range, sizeof range, "%" PRIx64 "-%" PRIx64, parsed.begin - guest_base,
                parsed.end - guest_base);
  return std::string(range).append(line.substr(line.find(' '))).append("\n");
}

void for_each_mapping(const std::function<void(std::string_view line)>& take) {
  std::FILE* file = std::fopen("/proc/self/maps", "re");
  if (file == nullptr) return;
  char line[4096 + 256];
  while (std::fgets(line, sizeof line, file) != nullptr) take(line);
  std::fclose(file);
}

// No more than what has changed since the last time is looked at: there may be thousands of
// libraries. Guarded by the lock.
std::string guest_maps(std::uint64_t guest_base) {
  static std::uint64_t base = guest_base;
  static std::string last;
  static std::map<std::uint64_t, std::string> lines;  // the guest's, by address
  if (std::exchange(base, guest_base) != guest_base) {
    last.clear();
    lines.clear();
  }
  std::string now, maps;
  for_each_mapping([&](std::string_view line) { now += line; });
  ChangedLines changed = changed_lines(last, now);
  while (!changed.before.empty())
    if (const auto gone = parse_maps_line(cut_line(changed.before))) lines.erase(gone->begin);
  while (!changed.now.empty()) {
    const std::string_view line = cut_line(changed.now);
    if (const auto come = parse_maps_line(line))
      lines[come->begin] = guest_line(line, *come, guest_base);
  }
  last = std::move(now);
  for (const auto& [begin, line] : lines)
    if (maps.size() < kMaxMaps_bytes) maps += line;
  return maps;
}

// Of the files that a text of maps names, each once. What was read of a file when it was mapped
// first stays: the loader maps one library after the other. Another file at its path is another.
std::string build_ids(std::string_view maps) {
  static std::map<std::string, std::string> known;  // by inode and path; guarded by the lock
  std::string ids;
  std::set<std::string_view> seen;
  std::string_view previous;
  while (!maps.empty()) {
    const std::string_view line = cut_line(maps), path = path_in_maps_line(line);
    if (path == std::exchange(previous, path) || !seen.insert(path).second) continue;
    const std::string_view before = line.substr(0, line.size() - path.size());
    const std::size_t inode_end = before.find_last_not_of(' ');
    const std::size_t inode = before.find_last_of(' ', inode_end) + 1;
    auto [one, is_new] = known.try_emplace(std::string(line.substr(inode)));
    if (is_new) one->second = build_id_of(std::string(path));
    if (!one->second.empty()) ids.append(one->second).append(" ").append(path).append("\n");
  }
  return ids;
}

// Unless it holds the same already: programs may load libraries without end.
void replace_file(const std::string& path, const std::string& text) {
  static std::map<std::string, std::string> written;  // by path; guarded by the lock
  if (auto last = written.find(path); last != written.end() && last->second == text) return;
  const std::string part = path + ".new";
  ::unlink(part.c_str());
  if (write_new_file(part, text) && ::rename(part.c_str(), path.c_str()) == 0)
    written[path] = text;
  else
    ::unlink(part.c_str());
}

void write_maps() {
  // qemu maps code as data. Guarded by the lock.
  static FormerMaps former(
      [](FormerMaps::Range range) { return g_recorder.code.was_executed(range); });
  Recorder& r = g_recorder;
  std::lock_guard<std::mutex> guard(r.lock);
  const std::string maps = guest_maps(r.knows_guest_base ? r.guest_base : 0);
  const Epoch next{r.code.epoch() + 1};
  if (const auto replaced = former.see(maps, next); !replaced.empty()) r.code.begin_epoch(replaced);
  const std::string gone = former.text();
  replace_file(r.folder + "/" + kBuildIdsName, build_ids(maps + gone));
  if (!gone.empty()) replace_file(r.folder + "/" + kFormerMapsName, gone);
  replace_file(r.folder + "/" + kMapsName, maps);
}

bool unmaps_code(std::int64_t number, const SyscallArguments& arguments) {
  if (number != SYS_munmap) return false;
  std::lock_guard<std::mutex> guard(g_recorder.lock);
  const Address begin{static_cast<std::uint64_t>(arguments[0])};
  return g_recorder.code.was_executed({begin, begin + static_cast<std::uint64_t>(arguments[1])});
}

}  // namespace

void note_own_mappings() {
  for_each_mapping([](std::string_view line) {
    const std::optional<MapsLine> parsed = parse_maps_line(line);
    if (parsed && parsed->has_file())
      g_own.push_back({Address{parsed->begin}, Address{parsed->end}});
  });
}

void keep_maps(std::int64_t number, const SyscallArguments& arguments) {
  int pid = ::getpid();
  if (g_kept_pid.exchange(pid, std::memory_order_relaxed) != pid) g_stale = true;
  // What the last call mapped is there by now: the loader makes more of them after each library.
  if (g_stale.exchange(false)) write_maps();
  bool maps_code =
      number == SYS_mmap && (arguments[2] & PROT_EXEC) != 0 && (arguments[3] & MAP_ANONYMOUS) == 0;
  if (maps_code) g_stale = true;
  t_unmaps_code = unmaps_code(number, arguments);
}

void keep_unmapped() {
  if (std::exchange(t_unmaps_code, false)) write_maps();
}

}  // namespace tailtrace
