// RepeatRun: takes a thread at once through what would go round too often in steps.
//
// A single step of a string instruction that repeats itself is one round of it, so that clearing a
// megabyte would take a million. And in the vDSO a thread reads the time again if the kernel has
// changed it meanwhile, a thousand times a second: where a step takes long, as beside many threads,
// it would do so for ever. From the second round on it runs to the end of such a loop.
//
// The thread runs alone, to a breakpoint behind the instruction, or where the loop is left: behind
// a branch that led back, or at its target where the loop goes on behind it.
// gdbserver has one breakpoint at a place, whoever asked for it, and lldb-server counts: where the
// debugger may have one, and while any watches data, steps it is.
//
// Threading: one thread at a time.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "plugin/server/below/below.h"
#include "plugin/server/recording/passed_signals.h"
#include "plugin/server/recording/recorder.h"
#include "plugin/server/rsp/resume.h"
#include "plugin/server/rsp/stop_reply.h"

namespace tailtrace {

class RepeatRun {
 public:
  RepeatRun(Below& below, Recorder& recorder, PassedSignals& signals)
      : below_(below), recorder_(recorder), signals_(signals) {}

  // The debugger's `Z` and `z`, of a process.
  void note_request(std::string_view packet, std::int32_t pid);

  static bool may_lead_back(const Instruction& insn) {
    return insn.kind == InstructionClass::kConditional && insn.target < insn.address;
  }
  // Whether the debugger has a point that is no breakpoint in code.
  bool is_watching() const;

  // The thread has just told of a step, and `wanted` is what the debugger wants of it. True: it
  // runs now, alone. Errors: kGone.
  Result<bool> begin(ThreadId id, const rsp::ResumeAction* wanted);

  // The stop that came next, before anybody looks at it: one behind the instruction is the end of
  // a step. Errors: kGone.
  Result<rsp::StopReply> end(rsp::StopReply reply);

 private:
  // What a thread has met of loops since it is in the vDSO.
  struct Rounds {
    std::set<Address> led_back;       // branches
    std::optional<Instruction> last;  // that may lead back
  };

  std::optional<Address> behind(ThreadId id, const rsp::ResumeAction* wanted);
  std::optional<Address> behind_loop(const RecordedThread& thread, const Instruction& insn);
  Result<bool> is_long(ThreadId id, Address at);

  Below& below_;
  Recorder& recorder_;
  PassedSignals& signals_;
  std::set<std::pair<std::int32_t, std::string>> points_;  // of the debugger: process, and what
  std::map<ThreadId, Rounds> rounds_;
  std::optional<std::pair<ThreadId, Address>> short_;       // goes by steps, as is known
  std::optional<std::pair<ThreadId, Address>> running_to_;  // nothing: none runs
};

}  // namespace tailtrace
