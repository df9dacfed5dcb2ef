#include "plugin/server/gdb/non_stop.h"

#include <fmt/core.h>

#include <set>
#include <utility>

#include "plugin/engines/protocol_signals.h"
#include "plugin/engines/tasks.h"

namespace tailtrace {
namespace {

using rsp::ResumeAction;
using rsp::ResumeActions;

constexpr std::string_view kStop = "Stop:";

// `T05...` told as the stop that the debugger asked for: signal 0.
std::string as_wanted_stop(std::string payload) {
  if (payload.size() >= 3 && payload.front() == 'T') payload[1] = payload[2] = '0';
  return payload;
}

}  // namespace

bool is_running(ThreadId thread) {
  const std::vector<std::string> fields = stat_behind_name(thread);
  return !fields.empty() && fields.front() != "t" && fields.front() != "T";
}

Result<std::string> NonStop::resume(std::string_view packet) {
  auto actions = rsp::parse_resume(packet, {});
  if (!actions) return below_.ask(packet);
  Result<void> settled;
  std::set<std::int32_t> stepping;
  recorder_.for_each([&](RecordedThread& thread) {
    const ResumeAction* action = rsp::action_for(*actions, thread.id);
    if (action == nullptr) return;
    if (recorder_.needs_steps()) stepping.insert(thread.id.pid);
    if (action->kind == ResumeAction::Kind::kStop || runs_.contains(thread.id)) return;
    if (settled && thread.pc_written) {
      auto stop = recorder_.settle(thread);
      if (!stop) settled = fail(std::move(stop.error()));
    }
    if (action->signal) thread.signal = system_signal(*action->signal);
  });
  if (!settled) return fail(std::move(settled.error()));
  note_resume(*actions);
  if (stepping.empty()) return below_.ask(packet);
  return below_.ask(rsp::format_resume(rsp::in_steps(*actions, stepping)));
}

void NonStop::note_resume(const ResumeActions& actions) {
  for (const ResumeAction& action : actions)
    if (action.selector.is_thread() && action.kind != ResumeAction::Kind::kStop)
      asked_.try_emplace(action.selector.thread(), action);
  recorder_.for_each([&](RecordedThread& thread) {
    const ResumeAction* action = rsp::action_for(actions, thread.id);
    if (action == nullptr) return;
    if (action->kind != ResumeAction::Kind::kStop)
      runs_.try_emplace(thread.id, Run{*action, false, false});
  });
  // Also threads that are recorded no more, but still go by steps until their next one.
  for (auto& [thread, run] : runs_) {
    const ResumeAction* action = rsp::action_for(actions, thread);
    if (action != nullptr && action->kind == ResumeAction::Kind::kStop) run.stop_wanted = true;
  }
}

Result<void> NonStop::catch_running(ThreadId thread) {
  auto asked = asked_.find(thread);
  Run run{asked != asked_.end() ? asked->second : ResumeAction{}, false, false};
  runs_.try_emplace(thread, run).first->second.catching = true;
  auto answer = below_.ask("vCont;t:" + rsp::format_thread(thread));
  if (!answer) return fail(std::move(answer.error()));
  return {};
}

Result<void> NonStop::on_notification(std::string_view notification) {
  if (!notification.starts_with(kStop)) return {};
  std::string stop(notification.substr(kStop.size()));
  while (!stop.empty() && stop != "OK") {
    auto resume = take_stop(stop);
    if (!resume) return fail(std::move(resume.error()));
    std::vector<std::string> requests{"vStopped"};
    if (!resume->empty()) requests.push_back(std::move(*resume));
    auto answers = below_.ask_all(requests);
    if (!answers) return fail(std::move(answers.error()));
    stop = std::move(answers->front());
  }
  return {};
}

// What to send below for the thread to go on; empty when it stays, and the debugger is told.
Result<std::string> NonStop::take_stop(const std::string& payload) {
  auto reply = rsp::parse_stop_reply(payload);
  if (!reply) return std::string();
  ThreadId thread =
      reply->thread && reply->thread->is_thread() ? reply->thread->thread() : ThreadId{};
  auto run = runs_.find(thread);
  bool ours = run != runs_.end() || recorder_.records_process(thread.pid);
  auto judgement =
      judge_.judge(*reply, {run == runs_.end() ? nullptr : &run->second.action, ours, false});
  if (!judgement) return fail(std::move(judgement.error()));
  bool exits = reply->kind != rsp::StopReply::Kind::kStopped;
  if (reply->process) {
    std::erase_if(runs_, [&](const auto& r) { return r.first.pid == *reply->process; });
    std::erase_if(asked_, [&](const auto& a) { return a.first.pid == *reply->process; });
  }
  run = runs_.find(thread);
  bool told = *judgement == Judgement::kReport;
  if (told || exits) asked_.erase(thread);
  if (run == runs_.end()) {
    if (!told && !exits) return step_on(thread, 0);
    if (told) report(payload);
    return std::string();
  }
  bool caught = run->second.catching && reply->signal == 0 && reply->reasons == 0;
  if (!exits && !run->second.stop_wanted && (caught || !told)) {
    run->second.catching &= !caught;
    return step_on(thread, *judgement == Judgement::kGoOnWithSignal ? reply->signal : 0);
  }
  runs_.erase(run);
  asked_.erase(thread);
  if (told)
    report(payload);
  else if (!exits)
    report(as_wanted_stop(payload));
  return std::string();
}

std::string NonStop::step_on(ThreadId thread, std::uint8_t signal) {
  RecordedThread* recorded = recorder_.find(thread);
  ResumeAction action;
  action.selector = {thread.pid, thread.tid};
  if (signal != 0) action.signal = signal;
  if (recorded != nullptr) {
    action.kind = ResumeAction::Kind::kStep;
    recorded->signal = system_signal(signal);
    runs_.try_emplace(thread);
  } else {
    runs_.erase(thread);
  }
  return rsp::format_resume({action});
}

Result<std::string> NonStop::status() {
  stops_.clear();
  announced_ = false;
  auto stop = below_.ask("?");
  std::vector<std::string> goes_on;
  while (stop && !stop->empty() && *stop != "OK") {
    auto reply = rsp::parse_stop_reply(*stop);
    bool running = reply && reply->thread && reply->thread->is_thread() &&
                   runs_.contains(reply->thread->thread());
    auto resume = running ? take_stop(*stop) : Result<std::string>();
    if (!resume) return resume;
    if (!running) {
      if (reply && reply->thread) asked_.erase(reply->thread->thread());
      report(*stop);
    }
    if (!resume->empty()) goes_on.push_back(std::move(*resume));
    stop = below_.ask("vStopped");
  }
  if (!stop) return stop;
  if (auto resumed = below_.ask_all(goes_on); !resumed) return fail(std::move(resumed.error()));
  announced_ = !stops_.empty();
  return stops_.empty() ? "OK" : stops_.front();
}

std::string NonStop::next_stop() {
  if (announced_ && !stops_.empty()) stops_.pop_front();
  announced_ = !stops_.empty();
  return stops_.empty() ? "OK" : stops_.front();
}

void NonStop::report(std::string payload) { stops_.push_back(std::move(payload)); }

std::string NonStop::take_announcement() {
  if (announced_ || stops_.empty()) return {};
  announced_ = true;
  return std::string(kStop) + stops_.front();
}

void NonStop::forget_debugger() {
  stops_.clear();
  announced_ = false;
}

}  // namespace tailtrace
