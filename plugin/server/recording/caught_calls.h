// CaughtCalls: the system calls that a debugger waits for (`catch syscall`), in threads that go by
// single steps below, where gdbserver does not tell of them.
//
// A thread that stands at one runs instead of taking a step: gdbserver stops it as it enters the
// call, and again as it leaves. It must not get a signal on the way that nobody tells of, for it
// would run on in the handler.
//
// Threading: one thread at a time.
#pragma once

#include <map>
#include <optional>
#include <string_view>

#include "plugin/server/below/below.h"
#include "plugin/server/recording/passed_signals.h"
#include "plugin/server/recording/recorder.h"
#include "plugin/server/rsp/catch_request.h"
#include "plugin/server/rsp/resume.h"
#include "plugin/server/rsp/stop_reply.h"

namespace tailtrace {

class CaughtCalls {
 public:
  CaughtCalls(Below& below, Recorder& recorder, PassedSignals& signals)
      : below_(below), recorder_(recorder), signals_(signals) {}

  // The debugger's `QCatchSyscalls:...`, about a process.
  void note_request(std::string_view packet, std::int32_t pid);

  // Threads among those that `wanted` lets run that are about to enter or leave a call that is
  // caught run in `steps`, too. Errors: kGone.
  Result<rsp::ResumeActions> let_run(const rsp::ResumeActions& steps,
                                     const rsp::ResumeActions& wanted);
  // Whether the thread is about to enter or leave one. Errors: kGone.
  Result<bool> catches(const RecordedThread& thread);
  // True when let_run() would change nothing, whatever threads do.
  bool none() const { return caught_.empty(); }

  // The debugger is told of a stop. Errors: kGone.
  Result<void> told(const rsp::StopReply& reply);

 private:
  void forget(std::optional<std::int32_t> pid);

  Below& below_;
  Recorder& recorder_;
  PassedSignals& signals_;
  std::map<std::int32_t, rsp::CatchRequest> caught_;  // by process
  std::map<ThreadId, std::uint64_t> numbers_;         // of the calls that they stood at last
  std::map<ThreadId, std::uint64_t> entered_;         // of those that they are in, which was told
};

}  // namespace tailtrace
