// LldbWriter: what a bundle of ours holds so that LLDB's `trace load` opens it as well: each
// thread's newest instructions as Intel PT, whatever recorded them, and a trace.json beside them.
//
// LLDB takes the code from the files that were mapped, and knows one of each place, and one place
// of each, all the time: those that were mapped last. What ran other code (of a library that
// another one has replaced, of no file) is a gap in its traces.
//
// Threading: one thread at a time.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/base/result.h"
#include "decoder/history/snapshot.h"
#include "decoder/symbols/file_code.h"
#include "decoder/symbols/mapping.h"

namespace tailtrace {

class LldbWriter {
 public:
  // LLDB decodes all that it is given before it shows anything.
  static constexpr std::uint64_t kInstructions = 1'000'000;

  // The thread's PT bytes, which the bundle is to keep in the file `name`. Empty: there is nothing
  // that LLDB could read.
  Bytes add(const ThreadSnapshot& snapshot, const MappingsIn& mappings_in, const std::string& name);

  // The files that were executed and that LLDB cannot show, or not all the time.
  std::vector<Error> remarks() const;

  // The text of trace.json, in the bundle at `folder`. Files that can be read there LLDB finds
  // there, and all others at their paths.
  std::string description(const std::string& folder) const;

 private:
  struct Thread {
    std::int32_t tid = 0;
    std::string trace;
  };
  struct Module {
    std::string path, file, build_id;
    std::uint64_t bias = 0, load_address = 0;
  };
  struct Process {
    std::vector<Thread> threads;
    std::vector<Mapping> mappings;                          // the last ones known
    std::map<std::string, Module> modules;                  // that were executed, by file
    std::map<std::pair<std::string, Address>, bool> shown;  // whether a mapping is of its module
  };

  static bool is_shown(Process& process, const Mapping& mapping);
  std::vector<Mapping> shown_of(Process& process, std::span<const Mapping> executed);

  std::map<std::int32_t, Process> processes_;  // by pid
  FileCode files_;
  std::set<std::string> hidden_;
};

}  // namespace tailtrace
