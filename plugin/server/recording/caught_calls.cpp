#include "plugin/server/recording/caught_calls.h"

#include <utility>

namespace tailtrace {
namespace {

using rsp::ResumeAction;
using rsp::ResumeActions;

bool is_run(const ResumeAction* action) {
  return action != nullptr && action->kind == ResumeAction::Kind::kContinue;
}

}  // namespace

void CaughtCalls::note_request(std::string_view packet, std::int32_t pid) {
  auto request = rsp::parse_catch_request(packet);
  if (!request) return;
  caught_.erase(pid);
  if (request->is_on) caught_[pid] = std::move(*request);
}

Result<bool> CaughtCalls::catches(const RecordedThread& thread) {
  auto process = caught_.find(thread.id.pid);
  if (process == caught_.end() || thread.signal != 0) return false;
  if (auto entered = entered_.find(thread.id); entered != entered_.end())
    return process->second.catches(entered->second);
  auto number = recorder_.system_call(thread.id);
  if (!number) return fail(std::move(number.error()));
  if (!*number) return false;
  numbers_[thread.id] = **number;
  return process->second.catches(**number);
}

Result<ResumeActions> CaughtCalls::let_run(const ResumeActions& steps,
                                           const ResumeActions& wanted) {
  ResumeActions actions;
  for (const auto& [id, thread] : recorder_.threads()) {
    if (!is_run(rsp::action_for(wanted, id))) continue;
    auto caught = catches(thread);
    if (!caught) return fail(std::move(caught.error()));
    if (!*caught) {
      entered_.erase(id);
      continue;
    }
    ResumeAction run;
    run.selector = {id.pid, id.tid};
    actions.push_back(run);
  }
  if (auto kept = signals_.keep(!actions.empty()); !kept) return fail(std::move(kept.error()));
  actions.insert(actions.end(), steps.begin(), steps.end());
  return actions;
}

Result<void> CaughtCalls::told(const rsp::StopReply& reply) {
  using rsp::StopReply;
  constexpr int kWithin = StopReply::kFork | StopReply::kVfork | StopReply::kVforkDone;
  if (reply.thread && reply.thread->is_thread() && (reply.reasons & kWithin) == 0) {
    const ThreadId id = reply.thread->thread();
    const bool left = entered_.erase(id) != 0;
    if ((reply.reasons & StopReply::kSystemCall) != 0 && !left) entered_[id] = numbers_[id];
  }
  if (reply.kind == StopReply::Kind::kExited || reply.kind == StopReply::Kind::kKilled)
    forget(reply.process);
  return signals_.keep(false);
}

// All that were, where it is not said which process ended.
void CaughtCalls::forget(std::optional<std::int32_t> pid) {
  auto is_of_it = [pid](const auto& thread) { return !pid || thread.first.pid == *pid; };
  std::erase_if(numbers_, is_of_it);
  std::erase_if(entered_, is_of_it);
}

}  // namespace tailtrace
