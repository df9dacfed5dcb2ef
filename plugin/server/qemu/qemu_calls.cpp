// How a program under qemu stops at system calls: the recorder has its threads stop as they enter
// one (engines/qemu_plugin/call_catch.h), and stepped over it they stop as they leave.
#include "decoder/base/bytes.h"
#include "plugin/server/qemu/qemu_inferior.h"

namespace tailtrace {

bool QemuInferior::catch_calls(const rsp::CatchRequest& wanted) {
  caught_ = {};
  for (std::uint64_t number = 0; number < kMaxCaughtNumber; ++number)
    if (wanted.catches(number)) caught_.words[number / 64] |= 1ull << number % 64;
  return engine_.set_caught(caught_).has_value();
}

std::uint64_t QemuInferior::call_of(ThreadId thread) const {
  auto call = calls_.find(thread.tid);
  return call == calls_.end() ? ~0ull : parse_hex(call->second).value_or(~0ull);
}

// The recorder's way to stop it is a signal, which is nobody's.
std::optional<QemuInferior::Event> QemuInferior::entered_call(std::string reply) {
  static constexpr std::string_view kEntry = "syscall_entry:", kTrap = "T05";
  const std::size_t begin = reply.find(kEntry) + kEntry.size();
  calls_[stopped_.tid] = reply.substr(begin, reply.find(';', begin) - begin);
  reply.replace(0, kTrap.size(), kTrap);
  return Event{std::move(reply)};
}

// The number of the call that the thread that stopped has left; empty: of none that is still
// caught. GDB takes its wish back at each stop, and renews it.
std::string QemuInferior::left_call() {
  const std::uint64_t number = call_of(stopped_);
  auto call = calls_.extract(stopped_.tid);
  const bool is_caught =
      number < kMaxCaughtNumber && (caught_.words[number / 64] >> number % 64 & 1) != 0;
  return is_caught ? std::move(call.mapped()) : std::string();
}

bool QemuInferior::has_ended(std::int32_t tid) {
  auto alive = ask("T" + rsp::format_thread({pid(), tid}));
  return alive && *alive != "OK";
}

// Threads that were told to enter a call are to tell that they leave it. One that takes a signal
// along does not: it goes on in the handler. One that has ended in the call is nothing to the stub,
// which refuses the whole request for it.
void QemuInferior::step_caught(const rsp::ResumeActions& actions, rsp::ResumeActions& own) {
  for (auto call = calls_.begin(); call != calls_.end();) {
    const std::int32_t tid = (call++)->first;
    const rsp::ResumeAction* action = rsp::action_for(actions, {pid(), tid});
    if (action == nullptr || action->kind != rsp::ResumeAction::Kind::kContinue) continue;
    if (action->signal || has_ended(tid)) {
      calls_.erase(tid);
      continue;
    }
    // One that steps already may be about to tell of it, and would step once more.
    if (steps_.contains(tid)) continue;
    rsp::ResumeAction step;
    step.kind = rsp::ResumeAction::Kind::kStep;
    step.selector = {kStubPid, tid};
    steps_[tid] = !must_run(step);
    if (must_run(step)) step.kind = rsp::ResumeAction::Kind::kContinue;
    own.insert(own.begin(), step);
  }
}

}  // namespace tailtrace
