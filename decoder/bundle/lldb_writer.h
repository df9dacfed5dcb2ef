// LldbWriter: what a bundle of ours holds so that LLDB's `trace load` opens it as well: each
// thread's newest instructions as Intel PT, whatever recorded them, and a trace.json beside them.
//
// LLDB takes the code from the files that were mapped, where they are still there. Code that was in
// no file is not known to it.
//
// Threading: one thread at a time.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/base/result.h"
#include "decoder/bundle/bundle_about.h"
#include "decoder/history/snapshot.h"

namespace tailtrace {

class LldbWriter {
 public:
  // LLDB decodes all that it is given before it shows anything.
  static constexpr std::uint64_t kInstructions = 1'000'000;

  // The thread's PT bytes, which the bundle is to keep in the file `name`. Empty: there is nothing
  // that LLDB could read.
  Bytes add(const ThreadSnapshot& snapshot, std::string_view maps, const std::string& name);

  // The text of trace.json, in the bundle at `folder`. Files that were deleted LLDB finds there,
  // where there are copies, and all others at their paths.
  std::string description(const BundleAbout& about, const std::string& folder) const;

 private:
  struct Thread {
    std::int32_t tid = 0;
    std::string trace;
  };
  struct Process {
    std::vector<Thread> threads;
    std::string maps;                  // the last ones known
    std::vector<std::uint64_t> pages;  // of code that was executed: 4 KiB each, in order
  };
  std::map<std::int32_t, Process> processes_;  // by pid
};

}  // namespace tailtrace
