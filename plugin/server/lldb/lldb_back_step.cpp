// Steps in the past that LLDB's plugin asks for.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "decoder/base/bytes.h"
#include "plugin/server/lldb/call_edges.h"
#include "plugin/server/lldb/lldb_replay.h"

namespace tailtrace {
namespace {

constexpr std::string_view kPlanned = "OK", kEnds = "end", kCall = "call", kBegin = "begin",
                           kNone = "none";

// The next word of `a;b;c`, which it is taken off.
std::string_view take_word(std::string_view& text) {
  std::size_t end = std::min(text.find(';'), text.size());
  std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

std::uint64_t number_in(std::string_view digits) {
  std::uint64_t number = 0;
  (void)std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

// `BEGIN;END`, taken off.
std::optional<CodeRange> take_range(std::string_view& text) {
  const auto begin = parse_hex(take_word(text)), end = parse_hex(take_word(text));
  if (!begin || !end) return std::nullopt;
  return CodeRange{{*begin}, {*end}};
}

// The thread that a packet names before all else, which is taken off; none when it names none.
std::optional<ThreadId> take_thread(std::string_view& text) {
  if (!text.starts_with('p')) return std::nullopt;
  auto named = rsp::parse_thread(take_word(text));
  return named && named->is_thread() ? std::optional(named->thread()) : std::nullopt;
}

}  // namespace

// `:pPID.TID` or nothing
Result<std::string> LldbReplay::where(std::string_view named) {
  if (named.starts_with(':')) named.remove_prefix(1);
  const auto thread = take_thread(named);
  auto in_past = thread ? Result<bool>(past_ && past_->thread == *thread) : means_past();
  if (!in_past) return fail(std::move(in_past.error()));
  return *in_past ? fmt::format("-{}", items_back()) : std::string("0");
}

std::string LldbReplay::note_selected(std::string_view text) {
  selected_ = take_thread(text);
  return std::string(selected_ ? kPlanned : rsp::kFailed);
}

// Decides where the step leads, so that LLDB is only told to run when it leads anywhere.
Result<std::string> LldbReplay::plan_back(std::string_view text) {
  planned_.reset();
  auto thread = take_thread(text);
  if (!thread) {
    auto selected = below_.debugger_thread();
    if (!selected) return fail(std::move(selected.error()));
    if (!*selected) return std::string(kNone);
    thread = **selected;
  }
  // Another one that is in the past stays there until this one goes.
  std::optional<Past> other;
  if (past_ && past_->thread != *thread) other = std::exchange(past_, std::nullopt);
  auto answer = plan_of(*thread, text);
  if (other) past_ = std::move(other);
  return answer;
}

Result<std::string> LldbReplay::plan_of(ThreadId thread, std::string_view text) {
  std::string_view name = take_word(text);
  BackStep step;
  if (name == "over") step.kind = BackStep::Kind::kOver;
  if (name == "out") step.kind = BackStep::Kind::kOut;
  if (name == "breakpoint") step.kind = BackStep::Kind::kBreakpoint;
  if (name == "range") step.kind = BackStep::Kind::kRange;
  if (name == "into") step.kind = BackStep::Kind::kInto;
  const bool is_forward = name == "pass" || name == "enter";
  if (name == "range" || name == "into" || is_forward) {
    auto code = take_range(text);
    if (!code) return std::string(rsp::kFailed);
    step.code = *code;
  }
  const std::uint64_t callers = name == "leave" ? number_in(take_word(text)) : 0;
  if (name != "goto") step.function = take_range(text).value_or(CodeRange{});
  auto entered = enter(thread);
  if (!entered) return fail(std::move(entered.error()));
  const RecordedThread* recorded = recorder_.find(thread);
  // One that has executed nothing yet has no more than its present.
  if (!*entered) return std::string(recorded != nullptr && recorded->enabled ? kBegin : kNone);
  // In the present it stands on no item.
  bool in_present = !past_->at->valid();
  std::uint64_t from = in_present ? present() : past_->at->item().number;
  Ahead way;
  if (is_forward)
    way = ahead(0, {step.code, name == "enter", step.function}, from);
  else if (name == "leave")
    way = ahead(std::max<std::uint64_t>(callers, 1) - 1, {{}, false, step.function}, from);
  else
    way = {name == "goto" ? number_back(text) : target_of(step, from), {}};
  std::string answer = way.number == from ? std::string(kBegin) : plan(way.number);
  if (is_forward && answer == kPlanned) answer = way.answer;
  if (in_present)
    past_.reset();
  else
    past_->at->seek(from);
  return answer;
}

std::string LldbReplay::plan(std::uint64_t number) {
  if (number > present() || (number != present() && !reaches(number))) return std::string(kBegin);
  planned_ = Plan{past_->thread, number};
  return std::string(kPlanned);
}

// Of the item that is so far back: `-1` is the newest, `0` the present; 0 where there cannot be
// one.
std::uint64_t LldbReplay::number_back(std::string_view digits) const {
  std::int64_t position = 1;
  (void)std::from_chars(digits.data(), digits.data() + digits.size(), position);
  const std::uint64_t back = 0 - static_cast<std::uint64_t>(position);
  return position > 0 || back > present() ? 0 : present() - back;
}

// The number of the item where the step ends; `from` when the history has nothing older.
std::uint64_t LldbReplay::target_of(const BackStep& step, std::uint64_t from) {
  using Kind = BackStep::Kind;
  std::uint64_t reached = from;  // the oldest instruction in the function at hand
  OpenCalls open(step.function);
  if (past_->at->valid()) open.stand_on(*past_->history, past_->at->item());
  for (std::uint64_t number = from - 1; reaches(number); --number) {
    past_->at->seek(number);
    const HistoryItem& item = past_->at->item();
    bool is_any_function = step.kind == Kind::kInstruction || step.kind == Kind::kBreakpoint;
    if (item.is_gap && (is_any_function || reached == from)) continue;
    if (item.is_gap) return reached;  // nobody knows which function is before it
    if (step.kind == Kind::kInstruction) return number;
    if (step.kind == Kind::kBreakpoint) {
      if (stops_here()) return number;
      reached = number;
      continue;
    }
    if (item.instruction.kind == InstructionClass::kReturn && step.kind == Kind::kInto)
      return number;
    const bool leaves = open.go_back_to(*past_->history, item);
    if (step.kind == Kind::kRange || step.kind == Kind::kInto) {
      bool inside = step.code.contains(item.instruction.address);
      if (open.none() && (leaves || !inside)) return reached;
    }
    if (open.none()) reached = number;
    bool done = step.kind == Kind::kOver ? open.none() : step.kind == Kind::kOut && leaves;
    if (done || stops_here()) return number;
  }
  return reached;
}

// Forward, to where the function that is so many callers out has returned, or to the bounds. Nobody
// knows which function is behind a gap: it ends there.
LldbReplay::Ahead LldbReplay::ahead(std::uint64_t callers, const Bounds& bounds,
                                    std::uint64_t from) {
  HistoryCursor& at = *past_->at;
  OpenCalls open(bounds.function, callers);
  for (std::uint64_t number = from; number < present(); ++number) {
    at.seek(number);
    const HistoryItem& item = at.item();
    if (item.is_gap) return {number, kEnds};
    if (number != from) {
      open.go_on_to(*past_->history, item);
      if (stops_here()) return {number, kEnds};
      const bool is_out = bounds.code && !bounds.code->contains(item.instruction.address);
      if (is_out && open.none()) return {number, kPlanned};
    }
    if (bounds.enters && open.none() && calls(item)) return {number + 1, kCall};
    if (open.go_on_behind(item)) return {number + 1, kEnds};
  }
  return {present(), kEnds};
}

// As if the thread had run there. It gives a reason of its own: LLDB would take a finished step
// that left the program counter as it was for none.
std::string LldbReplay::take_planned(std::string_view packet) {
  const Plan plan = *std::exchange(planned_, std::nullopt);
  auto actions = rsp::parse_resume(packet, {});
  const rsp::ResumeAction* action = actions ? rsp::action_for(*actions, plan.thread) : nullptr;
  if (action != nullptr && action->signal) withheld_[plan.thread] = *action->signal;
  auto entered = enter(plan.thread);
  if (!entered || !*entered) return std::string(rsp::kFailed);
  if (plan.number != present()) (void)reaches(plan.number);
  HistoryCursor& at = *past_->at;
  at.seek(plan.number);
  while (at.valid() && at.item().is_gap) at.next();
  std::string reason = "the present";
  if (at.valid())
    reason = fmt::format("history position -{}", items_back());
  else
    past_.reset();
  return told_reply(plan.thread, reason);
}

}  // namespace tailtrace
