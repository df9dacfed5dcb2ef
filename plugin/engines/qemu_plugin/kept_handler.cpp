#include "plugin/engines/qemu_plugin/kept_handler.h"

#include <link.h>

#include <csignal>
#include <mutex>
#include <optional>
#include <utility>

#include "plugin/engines/qemu_plugin/recorder.h"

namespace tailtrace {
namespace {

using Actions = std::array<std::optional<KernelSigaction>, kMaxSignal + 1>;
Actions g_actions;  // guarded by the recorder's lock
KernelSigaction* g_table = nullptr;

thread_local std::optional<KernelSigaction> t_kept;

// Writable memory of qemu's own.
struct Memory {
  const KernelSigaction *begin, *end;
};

int take_writable(dl_phdr_info* info, std::size_t, void* to) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) == 0) continue;
    const std::uint64_t begin = (info->dlpi_addr + segment.p_vaddr + 7) & ~7ull;
    const std::uint64_t end = info->dlpi_addr + segment.p_vaddr + segment.p_memsz;
    *static_cast<Memory*>(to) = {reinterpret_cast<const KernelSigaction*>(begin),
                                 reinterpret_cast<const KernelSigaction*>(end)};
  }
  return 1;  // the program is the first of all loaded objects
}

const KernelSigaction* behind(const KernelSigaction* at, std::size_t words) {
  return reinterpret_cast<const KernelSigaction*>(reinterpret_cast<const std::uint64_t*>(at) +
                                                  words);
}

// How many of the program's actions stand in a table that begins there.
int agreements(const KernelSigaction* table) {
  int count = 0;
  for (std::size_t signal = 1; signal <= kMaxSignal; ++signal)
    count += g_actions[signal] && table[signal - 1] == *g_actions[signal] ? 1 : 0;
  return count;
}

// Where all of them agree, or more than anywhere else. Null: nowhere.
KernelSigaction* find_table() {
  Memory memory{};
  ::dl_iterate_phdr(take_writable, &memory);
  const KernelSigaction* best = nullptr;
  int most = 0;
  bool is_only = false;
  for (auto at = memory.begin; at + kMaxSignal <= memory.end; at = behind(at, 1)) {
    if (!(at[SIGSEGV - 1] == *g_actions[SIGSEGV])) continue;
    const int count = agreements(at);
    is_only = count > most || (is_only && count < most);
    if (count > most) most = count, best = at;
  }
  return is_only ? const_cast<KernelSigaction*>(best) : nullptr;
}

}  // namespace

void note_action(std::uint64_t signal, const KernelSigaction& action) {
  std::lock_guard lock(g_recorder.lock);
  if (signal <= kMaxSignal) g_actions[signal] = action;
}

void keep_handler() {
  std::lock_guard lock(g_recorder.lock);
  if (!g_actions[SIGSEGV]) return;
  if (g_table == nullptr) g_table = find_table();
  if (g_table != nullptr) t_kept = g_table[SIGSEGV - 1];
}

void put_back_handler() {
  const auto kept = std::exchange(t_kept, std::nullopt);
  if (!kept) return;
  KernelSigaction forgotten = *kept;
  forgotten.handler = 0;  // SIG_DFL
  KernelSigaction& action = g_table[SIGSEGV - 1];
  if (action == forgotten) action = *kept;
}

}  // namespace tailtrace
