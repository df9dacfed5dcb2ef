#include "plugin/server/recording/repeat_run.h"

#include <fmt/format.h>

#include <algorithm>

namespace tailtrace {
namespace {

using rsp::ResumeAction;
using rsp::StopReply;

std::string breakpoint_at(Address address) { return fmt::format("0,{:x},1", address.value); }

bool is_breakpoint(std::string_view point) { return point.starts_with("0,"); }

}  // namespace

// `Z` or `z`, then `TYPE,ADDRESS,KIND`, and conditions behind semicolons.
void RepeatRun::note_request(std::string_view packet, std::int32_t pid) {
  if (!packet.starts_with('Z') && !packet.starts_with('z')) return;
  std::pair point(pid, std::string(packet.substr(1, packet.find(';') - 1)));
  if (packet.front() == 'Z')
    points_.insert(std::move(point));
  else
    points_.erase(point);
}

bool RepeatRun::is_watching() const {
  return std::ranges::any_of(points_,
                             [](const auto& point) { return !is_breakpoint(point.second); });
}

Result<bool> RepeatRun::begin(ThreadId id, const ResumeAction* wanted) {
  const auto end = behind(id, wanted);
  if (!end) return false;
  auto worthwhile = is_long(id, recorder_.find(id)->stop.pc);
  if (!worthwhile || !*worthwhile) return worthwhile;
  auto set = below_.ask("Z" + breakpoint_at(*end));
  if (!set) return fail(std::move(set.error()));
  if (*set != "OK") {
    short_ = {id, recorder_.find(id)->stop.pc};  // it has to go by steps
    return false;
  }
  if (auto kept = signals_.keep(true); !kept) return fail(std::move(kept.error()));
  running_to_ = {id, *end};
  auto sent = below_.link().send("vCont;c:" + rsp::format_thread(id));
  return sent ? Result<bool>(true) : fail(std::move(sent.error()));
}

// Where the instruction that the thread stands at ends, if it repeats itself, or its loop does, and
// nothing of the debugger's is in the way of a run.
std::optional<Address> RepeatRun::behind(ThreadId id, const ResumeAction* wanted) {
  const RecordedThread* thread = recorder_.find(id);
  if (thread == nullptr || thread->signal != 0 || wanted == nullptr) return std::nullopt;
  const auto insn = recorder_.next_instruction(*thread);
  const bool is_string = insn && insn->kind == InstructionClass::kRepString;
  if (!is_string) short_.reset();
  if (!insn) return std::nullopt;
  const auto end = is_string ? insn->next() : behind_loop(*thread, *insn);
  if (!end) return std::nullopt;
  const bool runs = wanted->kind == ResumeAction::Kind::kContinue ||
                    (wanted->kind == ResumeAction::Kind::kRangeStep && wanted->in_range(*end));
  const bool is_free = std::ranges::none_of(points_, [&](const auto& point) {
    return point.second == breakpoint_at(insn->address) || point.second == breakpoint_at(*end);
  });
  return runs && is_free && !is_watching() ? end : std::nullopt;
}

// Where it goes on behind the loop, if it stands at a branch of the vDSO's that may lead back, and
// has come round to it. Where no such branch was between, the loop goes on behind this one.
std::optional<Address> RepeatRun::behind_loop(const RecordedThread& thread,
                                              const Instruction& insn) {
  if (!may_lead_back(insn) && rounds_.empty()) return std::nullopt;
  if (!recorder_.is_in_vdso(thread)) {
    rounds_.erase(thread.id);
    return std::nullopt;
  }
  Rounds& rounds = rounds_[thread.id];
  if (rounds.last && rounds.last->target == insn.address)
    rounds.led_back.insert(rounds.last->address);
  if (!may_lead_back(insn)) return std::nullopt;
  const auto last = std::exchange(rounds.last, insn);
  if (rounds.led_back.contains(insn.address)) return insn.next();
  return last && last->address == insn.address ? std::optional(insn.target) : std::nullopt;
}

// One that is not is asked once, at its first round.
Result<bool> RepeatRun::is_long(ThreadId id, Address at) {
  if (rounds_.contains(id)) return true;
  if (short_ == std::pair(id, at)) return false;
  auto rounds = below_.read_register(id, Below::Register::kRcx);
  if (!rounds) return fail(std::move(rounds.error()));
  if (*rounds >= StepEngine::kManyRounds) return true;
  short_ = {id, at};
  return false;
}

Result<StopReply> RepeatRun::end(StopReply reply) {
  if (!running_to_) return reply;
  const auto [id, end] = *std::exchange(running_to_, std::nullopt);
  auto removed = below_.ask("z" + breakpoint_at(end));
  if (!removed) return fail(std::move(removed.error()));
  if (auto passed = signals_.keep(false); !passed) return fail(std::move(passed.error()));
  const bool is_there = reply.kind == StopReply::Kind::kStopped && reply.thread &&
                        reply.thread->is_thread() && reply.thread->thread() == id &&
                        reply.pc == end;
  if (is_there) reply.reasons &= ~StopReply::kSwBreak;
  return reply;
}

}  // namespace tailtrace
