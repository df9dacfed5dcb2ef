#include "plugin/server/recording/caught_calls.h"

#include <sys/syscall.h>

#include "decoder/base/bytes.h"

namespace tailtrace {
namespace {

using rsp::ResumeAction;
using rsp::ResumeActions;

constexpr std::string_view kCatch = "QCatchSyscalls:";

bool is_run(const ResumeAction* action) {
  return action != nullptr && action->kind == ResumeAction::Kind::kContinue;
}

// The return from a handler is caught only by its own name: it does not come back behind itself,
// and the history would have a gap.
bool is_among(std::uint64_t number, const std::set<std::uint64_t>& caught) {
  return caught.empty() ? number != SYS_rt_sigreturn : caught.contains(number);
}

}  // namespace

// `QCatchSyscalls:1;NUMBER;...`, all without a number; `QCatchSyscalls:0`.
void CaughtCalls::note_request(std::string_view packet, std::int32_t pid) {
  if (!packet.starts_with(kCatch)) return;
  std::string_view rest = packet.substr(kCatch.size());
  if (!rest.starts_with('1')) {
    caught_.erase(pid);
    return;
  }
  Numbers& numbers = caught_[pid] = {};
  rest.remove_prefix(1);
  while (rest.starts_with(';')) {
    rest.remove_prefix(1);
    const std::string_view digits = rest.substr(0, rest.find(';'));
    if (auto number = parse_hex(digits)) numbers.insert(*number);
    rest.remove_prefix(digits.size());
  }
}

Result<bool> CaughtCalls::catches(const RecordedThread& thread) {
  auto process = caught_.find(thread.id.pid);
  if (process == caught_.end() || thread.signal != 0) return false;
  if (auto entered = entered_.find(thread.id); entered != entered_.end())
    return is_among(entered->second, process->second);
  if (!recorder_.is_at_system_call(thread)) return false;
  auto number = below_.read_register(thread.id, Below::Register::kRax);
  if (!number) return fail(std::move(number.error()));
  numbers_[thread.id] = *number;
  return is_among(*number, process->second);
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
