// What Proxy does when the program stops.
#include <fmt/format.h>

#include "plugin/server/proxy.h"

namespace tailtrace {

Result<void> Proxy::on_stop_reply(std::string_view payload) {
  std::string told(payload);  // which ends with the next question
  auto stop = rsp::expand_runs(told, expanded_) ? rsp::parse_stop_reply(expanded_) : std::nullopt;
  if (stop) {
    if (stop->thread && stop->thread->is_thread()) below_.server_selected(stop->thread->thread());
    stepper_.note_row();
    auto is_step = lldb_server_.is_step(*stop);
    if (!is_step) return fail(std::move(is_step.error()));
    if (*is_step) stop->reasons = 0;
    lldb_server_.note_others(*stop);
    const bool interrupted = judge_.interrupted();
    auto untraceable = lldb_trace_.untraceable_thread(*stop);
    if (!untraceable) return fail(std::move(untraceable.error()));
    // Another debugger may be here now, which has not asked for that trace.
    if (!lldb_.is_lldb()) untraceable->reset();
    if (*untraceable) judge_.set_interrupted(true);
    auto verdict = stepper_.stopped(*stop);
    if (!verdict) return fail(std::move(verdict.error()));
    if (*verdict == Stepper::Verdict::kGoesOn) return {};
    if (*verdict == Stepper::Verdict::kReportOther)
      if (auto other = take_other_stop(told, *stop); !other) return other;
    told = lldb_server_.stop_for_debugger(lldb_.stop_for_debugger(told), *stop, interrupted);
    auto rest = lldb_replay_.rest_of(*stop, judge_.interrupted());
    if (!rest) return fail(std::move(rest.error()));
    if (*rest) return stepper_.resume(**rest, run_choice_);
    if (*untraceable && judge_.was_interruption()) {
      told = std::move(**untraceable);
      stop = rsp::parse_stop_reply(told);
    }
    note_stop(*stop);
    lldb_replay_.note_stop(*stop);
    judge_.set_interrupted(false);
    lldb_trace_.stopped();
    answer(lldb_.tell(told));
    return {};
  }
  if (!lldb_server_.is_before_end(told)) answer(told);
  return {};
}

// The stop of the thread that the debugger is to be told of instead.
Result<void> Proxy::take_other_stop(std::string& told, rsp::StopReply& stop) {
  auto other = lldb_server_.why_stopped(fmt::format("{:x}", stepper_.other().tid));
  if (!other) return fail(std::move(other.error()));
  if (!rsp::parse_stop_reply(*other)) return {};
  told = std::move(*other);
  stop = *rsp::parse_stop_reply(told);
  return {};
}

// A stop that the debugger is told of.
void Proxy::note_stop(const rsp::StopReply& stop) {
  terminal_.take_back();
  if (options_.on_program_end && stop.kind == rsp::StopReply::Kind::kExited)
    options_.on_program_end(stop.signal << 8);
  if (options_.on_program_end && stop.kind == rsp::StopReply::Kind::kKilled)
    options_.on_program_end(below_.system_signal(stop.signal));
  if (!listener_.is_stdio()) {
    if (stop.kind == rsp::StopReply::Kind::kExited)
      say(fmt::format("\nChild exited with status {}", stop.signal));
    if (stop.kind == rsp::StopReply::Kind::kKilled)
      say(fmt::format("\nChild terminated with signal = {:#x}", below_.system_signal(stop.signal)));
  }
  if (stop.kind == rsp::StopReply::Kind::kStopped && stop.thread && stop.thread->is_thread())
    below_.debugger_told(stop.thread->thread());
  else if (stop.kind == rsp::StopReply::Kind::kExited || stop.kind == rsp::StopReply::Kind::kKilled)
    below_.debugger_selected(std::nullopt);
}

}  // namespace tailtrace
