// Recorder: everything the plugin knows inside one process, and what it does when qemu calls.
//
// Threading: `lock` guards all but the rings and Vcpu entries, which belong to their threads;
// on_block() takes no lock.
#pragma once

#include <bitset>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "decoder/record/ring_format.h"
#include "plugin/engines/qemu_plugin/block_table.h"
#include "plugin/engines/qemu_plugin/code_log.h"
#include "plugin/engines/qemu_plugin/rings.h"
#include "plugin/engines/qemu_plugin/thread_room.h"

namespace tailtrace {

constexpr std::size_t kKeptInfos = 4;

// What a thread's ring does not hold.
struct Vcpu {
  BlockInfo own_info;            // of its ring's own or spare block, when that is the open one
  std::uint64_t* registers;      // qemu's copy of the guest's registers; null until known
  std::atomic<bool> is_running;  // between creation and end
  std::atomic<bool> executes;    // not in a system call, and not stopped
  ThreadRoom room;               // in the debugger's trace
  // Of the host's signals that the thread has not stopped for yet (signal_info.h); of number 0:
  // none.
  siginfo_t infos[kKeptInfos];
  unsigned oldest_info;
  bool was_no_address;  // what it accessed when it faulted last, and no handler was told of yet
};

constexpr std::uint64_t kMaxSignal = 64;

struct RecorderOptions {
  std::string session;              // folder; exists
  std::uint64_t ring_records = 0;   // per thread
  std::uint32_t program_index = 0;  // programs that this process executed before
  bool follows_exec = true;         // also the programs that this process executes are recorded
  bool has_stub = false;            // a debugger holds this process through qemu's stub
};

struct Recorder {
  RecorderOptions options;
  std::string folder;       // of this process
  std::string plugin_path;  // this plugin's own file
  std::mutex lock;
  BlockTable blocks;
  CodeLog code;
  Rings rings;
  Vcpu* vcpus = nullptr;         // by number, up to and with g_rings.spare
  std::uint32_t vcpu_count = 0;  // numbers below this were in use
  std::uint64_t guest_base = 0;  // where the guest's address 0 lies in our memory
  bool knows_guest_base = false;
  std::vector<std::uint64_t> restorers;   // return addresses of signal handlers
  std::bitset<kMaxSignal + 1> with_info;  // signals whose handlers asked for a siginfo
  std::bitset<kMaxSignal + 1> with_trap;  // and those during which SIGTRAP is not blocked

  Vcpu& vcpu(std::uint32_t cpu) { return vcpus[cpu < g_rings.spare ? cpu : g_rings.spare]; }
  const BlockInfo& info_of(std::uint32_t cpu, const RingBlock* block) {
    return blocks.holds(block) ? blocks.info(block) : vcpu(cpu).own_info;
  }
};
extern Recorder g_recorder;

// The vCPU whose thread this is; -1 until known.
extern thread_local int t_cpu;

}  // namespace tailtrace
