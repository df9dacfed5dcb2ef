// What Proxy answers by itself.
#include <fmt/format.h>

#include <algorithm>

#include "decoder/base/bytes.h"
#include "plugin/engines/protocol_signals.h"
#include "plugin/server/proxy.h"
#include "plugin/server/rsp/feature_list.h"
#include "plugin/server/rsp/pack.h"

namespace tailtrace {

// Packets whose answer is ours. False for all others.
Result<bool> Proxy::answer_here(const std::string& packet) {
  if (packet.empty()) {
    reply("");  // nothing is supported; gdbserver would take it for the end of the connection
    return true;
  }
  if (packet == "QStartNoAckMode") {
    reply("OK");
    if (debugger_) debugger_->stop_acks();
    return true;
  }
  if (packet == "qSupported" || packet.starts_with("qSupported:")) {
    if (auto done = on_supported(packet); !done) return fail(std::move(done.error()));
    return true;
  }
  if (packet.starts_with("QNonStop:")) {
    if (auto done = on_mode(packet); !done) return fail(std::move(done.error()));
    return true;
  }
  if (is_non_stop_) {
    auto answered = answer_non_stop(packet);
    if (!answered || *answered) return answered;
  }
  if (packet.starts_with("qRcmd,")) return on_monitor(packet);
  if (packet.starts_with("qTailtrace:") || packet.starts_with("qTailtrace."))
    return on_question(packet);
  return answer_trace(packet);
}

// A request to run is answered although nothing runs. False: it brings a signal along, which must
// not be lost, or names no thread.
bool Proxy::stop_at_once(std::string_view request) {
  auto actions = rsp::parse_resume(request, run_choice_);
  if (!actions ||
      std::ranges::any_of(*actions, [](const auto& one) { return one.signal.has_value(); }))
    return false;
  const auto thread = below_.debugger_thread();
  if (!thread || !*thread) return false;
  const rsp::ThreadSelector& first = actions->front().selector;
  const ThreadId stopped = first.tid > 0 ? ThreadId{first.pid, first.tid} : **thread;
  reply(fmt::format("T{:02x}thread:{};", kProtocolSigInt, rsp::format_thread(stopped)));
  return true;
}

Result<bool> Proxy::answer_trace(std::string_view packet) {
  if (packet == "QEnableErrorStrings") lldb_trace_.enable_error_texts();
  auto answered = lldb_.answer(packet);
  if (answered && !*answered && lldb_.is_lldb()) {
    if (LldbReplay::goes_back(packet))
      if (auto met = lldb_trace_.meet_threads(); !met) return fail(std::move(met.error()));
    answered = lldb_replay_.answer(packet);
    if (answered && *answered) answered = lldb_.tell(**answered);
  }
  if (answered && !*answered) answered = lldb_server_.answer(packet);
  if (answered && !*answered) answered = lldb_trace_.answer(packet);
  if (answered && !*answered) answered = trace_.answer(packet);
  if (!answered) return fail(std::move(answered.error()));
  if (!*answered) return false;
  if (auto done = update_thread_events(); !done) return fail(std::move(done.error()));
  reply(**answered);
  return true;
}

Result<void> Proxy::on_mode(std::string_view packet) {
  auto answer = below_.ask(packet);
  if (!answer) return fail(std::move(answer.error()));
  if (*answer == "OK") is_non_stop_ = packet.ends_with('1');
  if (is_non_stop_ && recorder_.needs_steps())
    trace_.set_catch_running([this](ThreadId t) { return non_stop_.catch_running(t); });
  else
    trace_.set_catch_running({});
  reply(*answer);
  return {};
}

Result<bool> Proxy::answer_non_stop(std::string_view packet) {
  Result<std::string> answer;
  if (packet.starts_with("QThreadEvents:")) {
    judge_.set_reports_threads(packet.ends_with('1'));
    auto done = update_thread_events();
    answer = done ? Result<std::string>("OK") : fail(std::move(done.error()));
  } else if (packet.starts_with("vCont;")) {
    answer = non_stop_.resume(packet);
  } else if (packet == "?") {
    answer = non_stop_.status();
  } else if (packet == "vStopped") {
    answer = non_stop_.next_stop();
  } else {
    return false;
  }
  if (!answer) return fail(std::move(answer.error()));
  reply(*answer);
  return true;
}

// In non-stop the server below may tell of every thread that comes and goes.
Result<void> Proxy::update_thread_events() {
  if (!is_non_stop_ || !has_thread_events_) return {};
  bool wanted = judge_.reports_threads() || (recorder_.needs_steps() && !recorder_.empty());
  if (wanted == thread_events_on_) return {};
  auto answer = below_.ask(wanted ? "QThreadEvents:1" : "QThreadEvents:0");
  if (!answer) return fail(std::move(answer.error()));
  thread_events_on_ = wanted;
  return {};
}

Result<void> Proxy::on_supported(std::string_view packet) {
  static constexpr std::string_view kName = "qSupported", kBegin = "qSupported:";
  lldb_.meet_debugger(packet);
  auto wanted = rsp::FeatureList::parse(packet.substr(std::min(packet.size(), kBegin.size())));
  lldb_.change_wishes(wanted);
  if (recorder_.needs_steps()) {
    // Without these a breakpoint and a finished step look the same.
    wanted.set("swbreak", "+");
    wanted.set("hwbreak", "+");
  }
  auto answer = below_.ask(std::string(kName) + ":" + wanted.to_string());
  if (!answer) return fail(std::move(answer.error()));
  auto features = rsp::FeatureList::parse(*answer);
  has_thread_events_ = features.has("QThreadEvents");
  stepper_.set_has_thread_events(has_thread_events_);
  TraceService::announce(features);
  features.set("QStartNoAckMode", "+");
  // By these GDB is told of the end of single threads, as by QThreadEvents, which does as well.
  features.remove("QThreadOptions");
  if (recorder_.needs_steps()) {
    // What the server below would do by itself when it reaches a breakpoint, while it is stepped.
    features.remove("ConditionalBreakpoints");
    features.remove("BreakpointCommands");
  }
  lldb_.change_features(features);
  lldb_server_.change_features(features);
  if (lldb_.is_lldb()) LldbReplay::announce(features);
  reply(features.to_string());
  return {};
}

Result<bool> Proxy::on_monitor(std::string_view packet) {
  static constexpr std::size_t kPiece_bytes = 2048;
  std::size_t comma = packet.find(',');
  auto command = from_hex(packet.substr(comma + 1));
  if (!command) return false;
  if (auto met = lldb_trace_.meet_threads(); !met) return fail(std::move(met.error()));
  auto text = monitor_.answer(as_text(*command));
  if (!text) return fail(std::move(text.error()));
  if (!*text) return false;
  for (std::size_t at = 0; at < (*text)->size(); at += kPiece_bytes)
    reply("O" + to_hex(as_bytes(std::string_view(**text).substr(at, kPiece_bytes))));
  reply("OK");
  return true;
}

// `qTailtrace:COMMAND` in hexadecimal, and `qTailtrace.more` until the answer is no longer `w`, or
// `qTailtrace.stop` when nobody waits for it any more. `qTailtrace.packed:COMMAND` has it packed.
Result<bool> Proxy::on_question(std::string_view packet) {
  static constexpr std::string_view kAsk = "qTailtrace:", kPacked = "qTailtrace.packed:",
                                    kMore = "qTailtrace.more", kStop = "qTailtrace.stop";
  if (packet == kStop) {
    monitor_.abandon();
    reply("OK");
    return true;
  }
  Result<std::optional<std::string>> text;
  if (packet == kMore) {
    text = monitor_.go_on();
  } else {
    const bool is_packed = packet.starts_with(kPacked);
    if (!is_packed && !packet.starts_with(kAsk)) return false;
    auto command = from_hex(packet.substr((is_packed ? kPacked : kAsk).size()));
    if (!command) return false;
    wants_packed_ = is_packed;
    if (auto met = lldb_trace_.meet_threads(); !met) return fail(std::move(met.error()));
    text = monitor_.ask(as_text(*command));
  }
  if (!text) return fail(std::move(text.error()));
  if (!*text)
    reply("w");
  else
    reply(wants_packed_ ? "z" + rsp::escape(rsp::pack(**text)) : "a" + rsp::escape(**text));
  return true;
}

}  // namespace tailtrace
