#include "plugin/server/rsp/resume.h"

#include <fmt/core.h>

#include "decoder/base/bytes.h"

namespace tailtrace::rsp {
namespace {

constexpr std::string_view kVCont = "vCont;";
// More actions than threads any debugger handles; a longer list is no list.
constexpr std::size_t kMaxActions = 1 << 16;

bool take_signal(ResumeAction& action, std::string_view digits) {
  auto signal = parse_hex(digits);
  if (digits.size() != 2 || !signal) return false;
  action.signal = static_cast<std::uint8_t>(*signal);
  return true;
}

bool take_range(ResumeAction& action, std::string_view text) {
  std::size_t comma = text.find(',');
  if (comma == std::string_view::npos) return false;
  auto begin = parse_hex(text.substr(0, comma)), end = parse_hex(text.substr(comma + 1));
  if (!begin || !end) return false;
  action.range_begin = {*begin};
  action.range_end = {*end};
  return true;
}

bool take_verb(ResumeAction& action, std::string_view verb) {
  using Kind = ResumeAction::Kind;
  if (verb.empty()) return false;
  std::string_view rest = verb.substr(1);
  switch (verb.front()) {
    case 'c':
      action.kind = Kind::kContinue;
      return rest.empty();
    case 'C':
      action.kind = Kind::kContinue;
      return take_signal(action, rest);
    case 's':
      action.kind = Kind::kStep;
      return rest.empty();
    case 'S':
      action.kind = Kind::kStep;
      return take_signal(action, rest);
    case 'r':
      action.kind = Kind::kRangeStep;
      return take_range(action, rest);
    case 't':
      action.kind = Kind::kStop;
      return rest.empty();
    default:
      return false;
  }
}

std::optional<ResumeAction> parse_action(std::string_view text) {
  ResumeAction action;
  std::size_t colon = text.find(':');
  if (!take_verb(action, text.substr(0, colon))) return std::nullopt;
  if (colon == std::string_view::npos) return action;
  auto selector = parse_thread(text.substr(colon + 1));
  if (!selector) return std::nullopt;
  action.selector = *selector;
  return action;
}

std::string format_selector(ThreadSelector selector, bool multiprocess) {
  if (selector.pid == ThreadSelector::kAll) return "";
  if (selector.tid > 0) return ":" + format_thread(selector.thread(), multiprocess);
  return multiprocess ? fmt::format(":p{:x}.-1", selector.pid) : "";
}

std::string format_verb(const ResumeAction& action) {
  switch (action.kind) {
    case ResumeAction::Kind::kContinue:
      return action.signal ? fmt::format("C{:02x}", *action.signal) : "c";
    case ResumeAction::Kind::kStep:
      return action.signal ? fmt::format("S{:02x}", *action.signal) : "s";
    case ResumeAction::Kind::kRangeStep:
      return fmt::format("r{:x},{:x}", action.range_begin.value, action.range_end.value);
    case ResumeAction::Kind::kStop:
      break;
  }
  return "t";
}

}  // namespace

bool is_resume(std::string_view payload) {
  if (payload.starts_with(kVCont)) return true;
  return !payload.empty() && std::string_view("cCsS").find(payload.front()) != payload.npos;
}

std::optional<ResumeActions> parse_resume(std::string_view payload, ThreadSelector chosen) {
  ResumeActions actions;
  if (!payload.starts_with(kVCont)) {
    ResumeAction action;
    action.selector = chosen;
    if (payload.empty() || std::string_view("cCsS").find(payload.front()) == std::string_view::npos)
      return std::nullopt;
    if (!take_verb(action, payload)) return std::nullopt;
    actions.push_back(action);
    // The old packets step one thread and let the others run.
    if (chosen.is_thread()) actions.push_back({});
    return actions;
  }
  payload.remove_prefix(kVCont.size());
  while (actions.size() < kMaxActions) {
    std::size_t end = payload.find(';');
    auto action = parse_action(payload.substr(0, end));
    if (!action) return std::nullopt;
    actions.push_back(*action);
    if (end == std::string_view::npos) return actions;
    payload.remove_prefix(end + 1);
  }
  return std::nullopt;
}

const ResumeAction* action_for(const ResumeActions& actions, ThreadId thread) {
  for (const ResumeAction& action : actions)
    if (action.selector.matches(thread)) return &action;
  return nullptr;
}

ResumeActions in_steps(const ResumeActions& actions, const std::set<std::int32_t>& processes) {
  ResumeActions steps;
  auto add = [&](ResumeAction action, bool as_step) {
    if (as_step) {
      action.kind = ResumeAction::Kind::kStep;
      action.range_begin = action.range_end = {};
    }
    steps.push_back(action);
  };
  for (const ResumeAction& action : actions) {
    bool runs = action.kind == ResumeAction::Kind::kContinue ||
                action.kind == ResumeAction::Kind::kRangeStep;
    if (action.selector.pid > 0) {
      add(action, runs && processes.contains(action.selector.pid));
      continue;
    }
    for (std::int32_t pid : processes) {
      ResumeAction of_process = action;
      of_process.selector.pid = pid;
      add(of_process, runs);
    }
    add(action, false);
  }
  return steps;
}

std::string format_resume(const ResumeActions& actions, bool multiprocess) {
  std::string text = "vCont";
  for (const ResumeAction& action : actions)
    text += ";" + format_verb(action) + format_selector(action.selector, multiprocess);
  return text;
}

}  // namespace tailtrace::rsp
