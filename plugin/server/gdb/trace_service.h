// TraceService: the six packets of GDB's branch trace: Qbtrace, Qbtrace-conf, qXfer:btrace and
// qXfer:btrace-conf, and what stands of them in qSupported.
//
// Threading: one thread at a time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "plugin/server/below/server_options.h"
#include "plugin/server/recording/recorder.h"
#include "plugin/server/rsp/feature_list.h"
#include "plugin/server/rsp/transfer.h"

namespace tailtrace {

class TraceService {
 public:
  TraceService(const ServeOptions& options, Below& below, Recorder& recorder)
      : options_(options), below_(below), recorder_(recorder) {}

  // Called when a thread that runs is to be recorded from now on. Without it all threads stand.
  using CatchRunning = std::function<Result<void>(ThreadId)>;
  void set_catch_running(CatchRunning catch_running) { catch_running_ = std::move(catch_running); }

  // What it can do replaces what the server below says it can.
  static void announce(rsp::FeatureList& features);

  // The answer to a packet that is its business; nothing for all others. REQUIRES: the server
  // below owes no answer. Errors: kGone when it is gone.
  Result<std::optional<std::string>> answer(std::string_view packet);

 private:
  Result<std::string> operate(std::string_view operation);
  Result<std::string> enable(ThreadId thread, BtraceFormat format);
  Result<std::string> disable(ThreadId thread);
  std::string configure(std::string_view setting);
  // Of the thread that the debugger selected; when it has none that is recorded, that.
  Result<std::string> answer_for_selected(
      const std::function<Result<std::string>(RecordedThread&)>& answer);
  Result<std::string> read(const rsp::TransferRequest& request);
  Result<std::string> read_conf(const rsp::TransferRequest& request);
  Result<std::string> make_document(RecordedThread& thread, std::string_view annex);
  // Of its newest records, enough for what the debugger is given at most.
  Result<std::string> bts(RecordedThread& thread, ThreadSnapshot newest,
                          std::string_view annex) const;
  Result<std::string> pt(RecordedThread& thread, ThreadSnapshot newest,
                         std::string_view annex) const;
  std::uint64_t handover(const RecordedThread& thread) const;

  const ServeOptions& options_;
  Below& below_;
  Recorder& recorder_;
  CatchRunning catch_running_;
  // As asked for by Qbtrace-conf; they hold for recordings that begin later.
  std::uint64_t bts_size_bytes_ = 64 << 10;
  std::uint64_t pt_size_bytes_ = 16 << 10;
  std::string document_;  // of the last read at offset 0: later offsets mean the same one
};

}  // namespace tailtrace
