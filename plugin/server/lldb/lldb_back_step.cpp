// Steps in the past that LLDB's plugin asks for.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "decoder/base/bytes.h"
#include "plugin/server/lldb/lldb_replay.h"

namespace tailtrace {
namespace {

constexpr std::string_view kBegin = "begin", kNone = "none";

bool is_call(const Instruction& insn) {
  return insn.kind == InstructionClass::kCall || insn.kind == InstructionClass::kIndirectCall;
}

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
  if (name == "range" || name == "into") {
    auto begin = parse_hex(take_word(text)), end = parse_hex(take_word(text));
    if (!begin || !end) return std::string(rsp::kFailed);
    step = {name == "into" ? BackStep::Kind::kInto : BackStep::Kind::kRange, Address{*begin},
            Address{*end}};
  }
  auto entered = enter(thread);
  if (!entered) return fail(std::move(entered.error()));
  if (!*entered) return std::string(kNone);
  // In the present it stands on no item.
  bool in_present = !past_->at->valid();
  std::uint64_t from = in_present ? present() : past_->at->item().number;
  std::uint64_t target = name == "goto"    ? number_back(text)
                         : name == "leave" ? left_at(number_in(text), from)
                                           : target_of(step, from);
  std::string answer = target == from ? std::string(kBegin) : plan(target);
  if (in_present)
    past_.reset();
  else
    past_->at->seek(from);
  return answer;
}

std::string LldbReplay::plan(std::uint64_t number) {
  if (number > present() || (number != present() && !reaches(number))) return std::string(kBegin);
  planned_ = Plan{past_->thread, number};
  return "OK";
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
  std::uint64_t depth = 0;       // calls that were made by it and are gone through backwards
  for (std::uint64_t number = from - 1; reaches(number); --number) {
    past_->at->seek(number);
    const HistoryItem& item = past_->at->item();
    bool is_any_function = step.kind == Kind::kInstruction || step.kind == Kind::kBreakpoint;
    if (item.is_gap && (is_any_function || reached == from)) continue;
    if (item.is_gap) return reached;  // nobody knows which function is before it
    const Instruction& insn = item.instruction;
    if (step.kind == Kind::kInstruction) return number;
    if (step.kind == Kind::kBreakpoint) {
      if (stops_here()) return number;
      reached = number;
      continue;
    }
    bool leaves = is_call(insn) && depth == 0;
    if (insn.kind == InstructionClass::kReturn && step.kind == Kind::kInto) return number;
    if (insn.kind == InstructionClass::kReturn)
      ++depth;
    else if (is_call(insn) && depth > 0)
      --depth;
    if (step.kind == Kind::kRange || step.kind == Kind::kInto) {
      bool inside = step.begin <= insn.address && insn.address < step.end;
      if (depth == 0 && (leaves || !inside)) return reached;
    }
    if (depth == 0) reached = number;
    bool done = step.kind == Kind::kOver ? depth == 0 : step.kind == Kind::kOut && leaves;
    if (done || stops_here()) return number;
  }
  return reached;
}

// The number of the item behind the return of the outermost of `frames` functions, of which the one
// at hand is the first. Nobody knows which function is behind a gap: it ends there.
std::uint64_t LldbReplay::left_at(std::uint64_t frames, std::uint64_t from) {
  HistoryCursor& at = *past_->at;
  const std::uint64_t end = present();
  for (std::uint64_t number = from; number < end; ++number) {
    at.seek(number);
    if (at.item().is_gap || (number != from && stops_here())) return number;
    if (is_call(at.item().instruction)) ++frames;
    if (at.item().instruction.kind != InstructionClass::kReturn) continue;
    if (frames <= 1) return number + 1;
    --frames;
  }
  return end;
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
