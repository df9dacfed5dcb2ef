// Machine: what the files under /proc and /sys say about this machine, as far as it matters to
// recording branches. Nothing is tried here; see trials.h.
//
// Threading: values; reading has no side effect.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tailtrace {

struct Processor {
  std::string vendor;  // "GenuineIntel", "AuthenticAMD"
  std::string name;    // as /proc/cpuinfo has it
  int family = 0, model = 0, stepping = 0;
  std::vector<std::string> flags;  // sorted
  int count = 0;                   // online

  bool has(const std::string& flag) const;
};

struct Pmu {
  std::string name;  // as in /sys/bus/event_source/devices
  int type = 0;      // perf_event_attr.type
};

// Linux capability numbers (include/uapi/linux/capability.h).
enum class Capability : unsigned { kIpcLock = 14, kSysPtrace = 19, kSysAdmin = 21, kPerfmon = 38 };

struct Machine {
  Processor cpu;
  std::string kernel;  // "6.1.0-18-amd64"
  std::vector<Pmu> pmus;
  std::optional<int> lbr_depth;  // branches that a sample can carry; nothing: none

  // Nothing: the file is missing, which for perf_event_paranoid means a kernel without perf events.
  std::optional<int> perf_event_paranoid;
  std::optional<std::int64_t> perf_event_mlock_kb;
  std::optional<int> yama_ptrace_scope;

  std::string performance_cpus;  // of a processor with two kinds of cores, as "0-7"; else empty
  bool isolates_page_tables = false;

  std::string hypervisor;  // its name; "unknown" when only the processor tells; empty: none
  std::string container;   // "docker", "podman", "lxc", ...; empty: none
  int seccomp = 0;         // of this process: 0 none, 1 strict, 2 filter
  std::uint64_t capabilities = 0;

  const Pmu* pmu(const std::string& name) const;
  bool may(Capability capability) const;
};

// `root` is put in front of every path: "" for this machine, a folder for another's files.
// What cannot be read is left as it is above.
Machine read_machine(const std::string& root);

}  // namespace tailtrace
