// LldbReplay: LLDB goes back in a recorded thread, and forward again, without the program moving.
//
// `bc` and `bs` (backwards), and the requests to run while the thread is in the past, walk its
// history; breakpoints that the debugger has inserted stop it, and so do both ends: of the program
// counter's past only the program counter is known, so all other registers are refused there.
// LLDB itself has no way to step back by less than to a breakpoint. The LLDB plugin has:
// `QTailtraceBack:[pPID.TID;]STEP`, of the debugger's thread or that one, is answered with `OK`
// when there is such a step in the history, and the next request to run takes it. Otherwise with
// `begin`: the history begins here, or with `none`: there is none of the thread.
//
//   insn               to the instruction executed before
//   over               the same in this function or its caller: calls made by it count as one
//   range;BEGIN;END    as far as `over` leads again and again while the pc is in [BEGIN, END)
//   into;BEGIN;END     the same, but to the end of the first function that was called on the way
//   out                to the call of this function
//   breakpoint         to the breakpoint before, else to where the history begins
//   leave;FRAMES       forward, to where so many functions have returned, the innermost first
//   pass;BEGIN;END     forward, to where the pc is not in [BEGIN, END): calls made by this function
//                      count as one. Where it ends before, or there, the answer is `end`.
//   enter;BEGIN;END    the same, but to the begin of a function that is called on the way, if one
//                      is: then the answer is `call`
//   goto;POSITION      to the item with that position, back from -1, the newest; 0 is the present
//
// Behind `over`, `range`, `into`, `out`, `leave`, `pass` and `enter` may stand `;BEGIN;END`, the
// code of the function: how exceptions and longjmp() come back to it is known by that.
//
// A breakpoint on the way ends a step, but for `goto`; a step forward ends in the present at last.
//
// LLDB names no thread with `bc`. The plugin does: `QTailtraceSelected:pPID.TID`, answered with
// `OK`, is of the next one.
//
// `qTailtraceWhere[:pPID.TID]` is answered with the position of the debugger's thread or that one,
// -1 for the newest item and so on; 0 in the present.
//
// Past the newest point the program is where it really stands, and runs with the next request. LLDB
// takes a thread that comes there from the past for one that has not hit the breakpoint it stands
// at, and leaves that in place: such a thread is stepped off it first, which LLDB is not told.
//
// Threading: one thread at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/history/history.h"
#include "plugin/server/below/below.h"
#include "plugin/server/lldb/call_edges.h"
#include "plugin/server/recording/recorder.h"
#include "plugin/server/rsp/feature_list.h"
#include "plugin/server/rsp/resume.h"
#include "plugin/server/rsp/stop_reply.h"

namespace tailtrace {

class LldbReplay {
 public:
  // `single_registers`: the server below reads and writes one register at a time.
  LldbReplay(Below& below, Recorder& recorder, bool single_registers)
      : below_(below), recorder_(recorder), single_registers_(single_registers) {}

  static void announce(rsp::FeatureList& features);

  // Whether a packet may lead into the past of a thread that was not there before.
  static bool goes_back(std::string_view packet);

  // Another debugger, which has inserted no breakpoints yet and sees the present.
  void forget_debugger();

  bool has_breakpoint(std::int32_t process, Address address) const;
  void process_gone(std::int32_t process) { breakpoints_.erase(process); }

  // A request as the server below understands it: gdbserver writes all registers at once only.
  // Errors: kGone.
  Result<std::string> request_for_server(std::string packet);

  // The answer to a packet that moves in the past or asks for registers there; nothing for all
  // others. Sees every packet: breakpoints are noted. REQUIRES: the server below owes no answer.
  // Errors: kGone.
  Result<std::optional<std::string>> answer(std::string_view packet);

  // The debugger is told of a stop of the program itself.
  void note_stop(const rsp::StopReply& stop);
  // What a request to run the program begins with: itself, with the signals that are still to be
  // delivered, or the step of a thread off the breakpoint that it has hit. REQUIRES: the server
  // below owes no answer. Errors: kGone.
  Result<std::string> first_of(const std::string& packet);
  // The program stopped behind that: what is to follow, nothing when the debugger is to be told.
  // REQUIRES: as first_of(). Errors: kGone.
  Result<std::optional<std::string>> rest_of(const rsp::StopReply& stop, bool interrupted);

 private:
  struct Past {
    ThreadId thread;
    Part part = Part::kAll;  // of what there is
    std::unique_ptr<const History> history;
    std::unique_ptr<HistoryCursor> at;  // the instruction to be executed next
  };
  enum class Until { kOneInstruction, kBreakpoint };
  // A step back as `QTailtraceBack` names it.
  struct BackStep {
    enum class Kind { kInstruction, kOver, kRange, kInto, kOut, kBreakpoint };
    Kind kind = Kind::kInstruction;
    CodeRange code;      // of kRange and kInto
    CodeRange function;  // empty where that is not known
  };

  Result<std::string> back(Until until);
  Result<std::string> where(std::string_view named);
  Result<std::string> plan_back(std::string_view text);
  Result<std::string> plan_of(ThreadId thread, std::string_view step);
  std::string note_selected(std::string_view text);
  std::string plan(std::uint64_t number);
  std::uint64_t target_of(const BackStep& step, std::uint64_t from);
  std::uint64_t number_back(std::string_view digits) const;
  struct Ahead {
    std::uint64_t number = 0;
    std::string_view answer;  // once it is planned
  };
  // `code`: no further than inside of that, in the innermost function.
  struct Bounds {
    std::optional<CodeRange> code;
    bool enters = false;  // functions that are called
    CodeRange function;   // as above
  };
  Ahead ahead(std::uint64_t callers, const Bounds& bounds, std::uint64_t from);
  std::string take_planned(std::string_view packet);
  std::string with_signals(const std::string& packet, rsp::ResumeActions actions);
  std::uint64_t items_back() const;
  Result<std::optional<std::string>> forward(std::string_view packet);
  Result<bool> enter(ThreadId thread);
  Result<std::optional<Past>> past_of(ThreadId thread, Part part);
  bool reaches(std::uint64_t number);
  std::uint64_t present() const { return past_->history->newest() + 1; }
  Result<std::optional<ThreadId>> thread_back(Until until);
  std::string stop_reply(ThreadId thread, std::string_view edge) const;
  static std::string told_reply(ThreadId thread, std::string_view reason);
  bool stops_here() const;
  Result<void> note_breakpoint(std::string_view packet);

  Result<bool> means_past();
  Result<std::string> read_register(std::uint64_t number);
  Result<bool> learn_registers();

  struct RegisterPlace {
    std::size_t at_digits = 0, digits = 0;  // in a `g` answer
  };

  Below& below_;
  Recorder& recorder_;
  bool single_registers_;
  std::optional<Past> past_;
  struct Plan {
    ThreadId thread;
    std::uint64_t number = 0;
  };
  std::optional<Plan> planned_;  // where the next request to run leads
  std::optional<ThreadId> selected_;
  std::map<std::int32_t, std::multiset<Address>> breakpoints_;  // by process
  std::set<ThreadId> hits_;  // stopped at a breakpoint, and have not run since
  // Were to be delivered by the request that led a thread from the present to the past.
  std::map<ThreadId, std::uint8_t> withheld_;
  struct StepOff {
    ThreadId thread;
    std::string breakpoint;  // as in Z0 and z0
    std::string rest;        // the debugger's request; none when that was the step
  };
  std::optional<StepOff> step_off_;
  std::vector<RegisterPlace> registers_;  // by number
};

}  // namespace tailtrace
