// How the program goes on from a breakpoint that it has hit, or with a signal, when LLDB has been
// in the past since.
#include <fmt/format.h>

#include <utility>

#include "plugin/server/lldb/lldb_replay.h"

namespace tailtrace {

using rsp::ResumeAction;
using rsp::StopReply;

void LldbReplay::note_stop(const StopReply& stop) {
  if (stop.kind != StopReply::Kind::kStopped || !stop.thread || !stop.thread->is_thread()) return;
  if (stop.reasons == StopReply::kSwBreak) hits_.insert(stop.thread->thread());
  // What is in the memory that it is a copy of.
  if (stop.reasons == StopReply::kFork && stop.child)
    breakpoints_[stop.child->pid] = breakpoints_[stop.thread->pid];
}

// LLDB itself takes a breakpoint away before it lets the thread go on that it knows to have hit it.
Result<std::string> LldbReplay::first_of(const std::string& packet) {
  auto actions = rsp::parse_resume(packet, {});
  if (!actions) return packet;
  for (auto one = hits_.begin(); one != hits_.end();) {
    const ThreadId thread = *one;
    const ResumeAction* action = rsp::action_for(*actions, thread);
    if (action == nullptr || action->kind == ResumeAction::Kind::kStop) {
      ++one;
      continue;
    }
    one = hits_.erase(one);
    auto pc = below_.read_pc(thread);
    if (!pc && pc.error().code == ErrorCode::kGone) return fail(std::move(pc.error()));
    if (!pc || !has_breakpoint(thread.pid, *pc) || action->signal) continue;
    const std::string breakpoint = fmt::format("0,{:x},1", pc->value);
    auto removed = below_.ask("z" + breakpoint);
    if (!removed) return fail(std::move(removed.error()));
    if (*removed != "OK") continue;
    const bool runs = action->kind == ResumeAction::Kind::kContinue;
    step_off_ = {thread, breakpoint, runs ? packet : std::string()};
    return "vCont;s:" + rsp::format_thread(thread);
  }
  return with_signals(packet, std::move(*actions));
}

// LLDB takes a signal for delivered that it has sent with a request to run.
std::string LldbReplay::with_signals(const std::string& packet, rsp::ResumeActions actions) {
  bool any = false;
  for (auto one = withheld_.begin(); one != withheld_.end();) {
    const auto [thread, signal] = *one;
    const ResumeAction* action = rsp::action_for(actions, thread);
    if (action == nullptr || action->kind == ResumeAction::Kind::kStop) {
      ++one;
      continue;
    }
    one = withheld_.erase(one);
    if (action->signal) continue;
    ResumeAction delivers = *action;
    delivers.selector = {thread.pid, thread.tid};
    delivers.signal = signal;
    actions.insert(actions.begin(), delivers);
    any = true;
  }
  return any ? rsp::format_resume(actions) : packet;
}

Result<std::optional<std::string>> LldbReplay::rest_of(const StopReply& stop, bool interrupted) {
  auto done = std::exchange(step_off_, std::nullopt);
  // Another program, or none, has no place for the breakpoint.
  const bool is_there =
      stop.kind == StopReply::Kind::kStopped && (stop.reasons & StopReply::kExec) == 0;
  if (!done || !is_there) return std::optional<std::string>();
  auto inserted = below_.ask("Z" + done->breakpoint);
  if (!inserted) return fail(std::move(inserted.error()));
  const bool stepped = stop.is_plain_trap() && stop.thread && stop.thread->tid == done->thread.tid;
  if (interrupted || !stepped || done->rest.empty()) return std::optional<std::string>();
  auto next = first_of(done->rest);
  if (!next) return fail(std::move(next.error()));
  return std::optional(std::move(*next));
}

}  // namespace tailtrace
