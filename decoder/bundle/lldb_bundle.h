// LLDB's trace bundles: a trace.json that names the raw traces, modules and threads, as LLDB's
// `trace save` writes it and `trace load` reads it (LLDB manual, "Intel PT trace", "Trace bundle").
//
// Threading: pure functions; values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "decoder/base/result.h"
#include "decoder/base/types.h"
#include "decoder/perf/clock.h"
#include "decoder/pt/decoder.h"

namespace tailtrace {

constexpr char kLldbBundleName[] = "trace.json";

// Where Linux loads its kernel unless it is told otherwise.
constexpr Address kLldbKernelAddress{0xffffffff81000000};

struct LldbModule {
  std::string path;         // of the file to read: in the bundle's folder, else system_path
  std::string system_path;  // where it was on the machine that recorded
  Address load_address;     // of its first segment
  std::string uuid;         // as LLDB writes it; empty: not known
};

struct LldbThread {
  ThreadId thread;
  std::string trace_path;  // empty when the trace is per processor
};

struct LldbProcess {
  std::int32_t pid = 0;
  std::string triple;
  std::vector<LldbThread> threads;
  std::vector<LldbModule> modules;
};

struct LldbCpu {
  std::uint32_t id = 0;
  std::string trace_path;
  std::string context_switch_path;
};

struct LldbBundle {
  pt::Cpu cpu;
  std::vector<LldbProcess> processes;
  std::vector<LldbCpu> cpus;
  std::optional<LldbModule> kernel;  // its code is what the processors executed; no processes then
  std::optional<perf::TimeConversion> clock;
};

// Errors: kSystem or kPermission when the file cannot be read; kBadInput when it is no JSON or
// lacks what a bundle must have, has what does not go together, or names a file that is not in the
// bundle's folder or is a symbolic link, with the place in `why`. The files are not opened.
Result<LldbBundle> read_lldb_bundle(const std::string& path);

// The same for the text of a trace.json that lies in `folder`.
Result<LldbBundle> parse_lldb_bundle(std::string_view text, const std::string& folder);

}  // namespace tailtrace
