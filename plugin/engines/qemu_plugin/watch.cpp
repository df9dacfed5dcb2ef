#include "plugin/engines/qemu_plugin/watch.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "plugin/engines/qemu_plugin/flow.h"
#include "plugin/engines/qemu_plugin/guest_memory.h"
#include "plugin/engines/qemu_plugin/leave_block.h"

namespace tailtrace {
namespace {

// No access of an instruction has more.
constexpr std::uint64_t kMaxAccess_bytes = 16;

struct Access {
  std::uint64_t begin, end;
  bool is_store;
};

// One watched range, and what was in its memory and in what an access to it may reach.
struct Watch {
  WatchedRange range;
  std::uint8_t memory[kMaxWatched_bytes + 2 * kMaxAccess_bytes];

  std::uint64_t end() const { return range.begin + range.size_bytes; }
  std::uint64_t memory_begin() const { return range.begin - kMaxAccess_bytes; }
  std::uint64_t memory_size() const { return range.size_bytes + 2 * kMaxAccess_bytes; }
  bool is_met_by(const Access& access) const {
    return access.begin < end() && range.begin < access.end &&
           (access.is_store || range.on_loads != 0);
  }
};

Watch g_watches[kMaxWatchedRanges];
std::size_t g_watch_count = 0;
// Where all of their memory lies.
std::uint64_t g_low = ~0ull;
std::uint64_t g_high = 0;

// An access at this instruction was undone, and passes now; 0: none.
constinit thread_local std::uint64_t t_undone_pc = 0;
constinit thread_local bool t_is_undone_told = false;
constinit thread_local const WatchedRange* t_passed = nullptr;

std::uint8_t* host_memory(std::uint64_t address) {
  return reinterpret_cast<std::uint8_t*>(address + g_recorder.guest_base);
}

// The bytes of `access` that the watch remembers: from the one, or to it.
template <typename Copy>
void each_remembered(Watch& watch, const Access& access, Copy copy) {
  const std::uint64_t begin = std::max(access.begin, watch.memory_begin());
  const std::uint64_t end = std::min(access.end, watch.end() + kMaxAccess_bytes);
  if (begin < end)
    copy(watch.memory + (begin - watch.memory_begin()), host_memory(begin), end - begin);
}

void remember(const Access& access) {
  for (std::size_t i = 0; i < g_watch_count; ++i)
    each_remembered(g_watches[i], access, [](std::uint8_t* ours, std::uint8_t* theirs, auto size) {
      std::memcpy(ours, theirs, size);
    });
}

// As the memory is now. The pages before and behind the range may not be there.
void look_at(const Watch& watch, std::uint8_t* memory) {
  if (read_guest(watch.memory_begin(), memory, watch.memory_size())) return;
  read_guest(watch.range.begin, memory + kMaxAccess_bytes, watch.range.size_bytes);
}

void undo(Watch& watch, const Access& access) {
  each_remembered(watch, access, [](std::uint8_t* ours, std::uint8_t* theirs, auto size) {
    std::memcpy(theirs, ours, size);
  });
}

void meet(unsigned cpu, Watch& watch, const Access& access, std::uint64_t pc) {
  const bool again = t_undone_pc == pc;
  if (again && t_is_undone_told) {
    t_passed = &watch.range;
    return;
  }
  t_undone_pc = pc;
  t_is_undone_told = false;
  if (access.is_store) undo(watch, access);
  Flow flow(cpu);
  const int done = flow.open_info().index_of(pc);
  if (done >= 0) flow.cut_to(pc, done);
  leave_block(again);
}

void on_access(unsigned cpu, qemu_plugin_meminfo_t info, std::uint64_t address, void* pc) {
  if (address >= g_high || address + kMaxAccess_bytes <= g_low) return;
  const Access access{address, address + (1ull << qemu_plugin_mem_size_shift(info)),
                      qemu_plugin_mem_is_store(info)};
  for (std::size_t i = 0; i < g_watch_count; ++i)
    if (g_watches[i].is_met_by(access))
      meet(cpu, g_watches[i], access, reinterpret_cast<std::uint64_t>(pc));
  if (access.is_store) remember(access);
}

}  // namespace

void watch_accesses(qemu_plugin_tb* tb) {
  if (g_watch_count == 0) return;
  const std::size_t count = qemu_plugin_tb_n_insns(tb);
  for (std::size_t i = 0; i < count; ++i) {
    qemu_plugin_insn* insn = qemu_plugin_tb_get_insn(tb, i);
    qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
                                     reinterpret_cast<void*>(qemu_plugin_insn_vaddr(insn)));
  }
}

bool renew_watches() {
  const WatchedMemory& watched = g_recorder.blocks.header().watched;
  const bool is_code_old = g_watch_count == 0 && watched.count != 0;
  forget_watches();
  g_watch_count = std::min<std::size_t>(watched.count, kMaxWatchedRanges);
  for (std::size_t i = 0; i < g_watch_count; ++i) {
    g_watches[i].range = watched.ranges[i];
    g_low = std::min(g_low, g_watches[i].memory_begin());
    g_high = std::max(g_high, g_watches[i].end() + kMaxAccess_bytes);
  }
  for (std::size_t i = 0; i < g_watch_count; ++i) look_at(g_watches[i], g_watches[i].memory);
  return is_code_old;
}

void keep_watched_memory() {
  // An access of another thread's that is to be undone is so after less.
  constexpr timespec kUntilUndone = {0, 100'000};
  std::uint8_t now[sizeof Watch::memory];
  for (std::size_t i = 0; i < g_watch_count; ++i) {
    Watch& watch = g_watches[i];
    std::memcpy(now, watch.memory, watch.memory_size());
    look_at(watch, now);
    if (std::memcmp(now, watch.memory, watch.memory_size()) == 0) continue;
    ::nanosleep(&kUntilUndone, nullptr);
    look_at(watch, watch.memory);
  }
}

// The range is told by its begin, as debug registers tell it: LLDB knows it by that alone.
std::string watch_stop_word() {
  if (t_undone_pc != 0 && !std::exchange(t_is_undone_told, true)) return "undone:;";
  t_undone_pc = 0;
  const WatchedRange* passed = std::exchange(t_passed, nullptr);
  if (passed == nullptr) return {};
  char word[32];
  std::snprintf(word, sizeof word, "%s:%llx;", passed->on_loads != 0 ? "awatch" : "watch",
                static_cast<unsigned long long>(passed->begin));
  return word;
}

bool is_undone_access(std::uint64_t pc) { return pc != 0 && t_undone_pc == pc; }

void forget_watches() {
  g_watch_count = 0;
  g_low = ~0ull;
  g_high = 0;
}

}  // namespace tailtrace
