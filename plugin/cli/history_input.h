// What `history`, `calls` and the like read: recordings of threads, wherever they are kept.
//
// A path is a record stream, a bundle, ours or LLDB's, a perf.data file, the folder of a recorded
// process, or the folder of a session with any number of them; processes may be alive.
//
// Threading: one thread at a time.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "decoder/bundle/bundle.h"
#include "decoder/bundle/lldb_history.h"
#include "decoder/history/opened_thread.h"

namespace tailtrace {

namespace perf {
class PerfRecording;
}

// The folder of a process under qemu, opened once for all its threads.
struct OpenFolder;

// A thread that can be opened.
struct ThreadSource {
  std::string path;   // the record stream, the bundle, or the process's folder
  std::string state;  // "running", "exited", ...; empty: not known
  ThreadId thread;
  bool is_stream = false;
  std::shared_ptr<const LldbRecording> lldb;             // the bundle, when it is LLDB's
  std::shared_ptr<const perf::PerfRecording> perf_data;  // the file, when it is perf's
  std::shared_ptr<const BundleThread> in_bundle = {};    // when it is of a bundle of ours
  std::shared_ptr<OpenFolder> qemu = {};                 // the process's folder, when it is one
  // Of the programs that it executed one after the other, which all have its number; counted
  // from 1.
  std::size_t program = 1;
  bool has_more_programs = false;
  std::string cause = {};  // the signal in it that ended the process, or what a bundle was made for
};

// Threads in order of their appearance, but in each process first the one in which a signal ended
// it. Errors: no such path; nothing of ours; unreadable.
Result<std::vector<ThreadSource>> recorded_threads(const std::string& path);

// Picks by "TID" or "PID.TID"; by an empty text the first. Of programs that one process executed
// one after the other, the last, or with "#N" behind that the Nth. Errors: kUsage with those there
// are.
Result<ThreadSource> pick_thread(const std::vector<ThreadSource>& threads,
                                 const std::string& wanted);

// All, or the one that `wanted` picks. Errors: as both.
Result<std::vector<ThreadSource>> asked_threads(const std::string& path, const std::string& wanted);

// The newest `limit_records` of a thread; of a trace that is still to be decoded, all. Errors: as
// load_snapshot and QemuEngine.
Result<OpenedThread> open_recorded(const ThreadSource& thread, std::uint64_t limit_records);

// The files that it executed, as far as the recording tells.
std::vector<BundleModule> modules_of(const ThreadSource& thread);

// "4711.4712", "4711.4712#1" if it executed several programs: pick_thread takes it for that one.
std::string thread_text(const ThreadSource& thread);

// The same as a part of a JSON object: "pid", "tid", and "program" if it executed several.
nlohmann::ordered_json thread_json(const ThreadSource& thread);

// What --thread=THREAD takes.
constexpr char kThreadWord[] = "[PID.]TID[#N]";

}  // namespace tailtrace
