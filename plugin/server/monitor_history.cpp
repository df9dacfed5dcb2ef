#include "plugin/server/monitor_history.h"

#include <fmt/core.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "decoder/history/listing.h"
#include "plugin/server/rsp/thread_selector.h"

namespace tailtrace {
namespace {

// What one answer holds at most: the debugger waits for all of it.
constexpr std::size_t kMaxText_bytes = 1 << 20;
constexpr std::uint64_t kMaxItems = 10'000;

std::string_view next_word(std::string_view& rest) {
  std::size_t begin = std::min(rest.find_first_not_of(' '), rest.size());
  std::size_t end = std::min(rest.find(' ', begin), rest.size());
  std::string_view word = rest.substr(begin, end - begin);
  rest.remove_prefix(end);
  return word;
}

std::optional<std::uint64_t> parse_number(std::string_view word) {
  std::uint64_t number = 0;
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return number;
}

std::string refusal(ErrorCode code, std::string what, std::string why, std::string fix) {
  return Error{code, std::move(what), std::move(why), std::move(fix), {}}.to_string() + "\n";
}

// The line that all items come behind.
std::string head_line(const History& history, std::string_view engine) {
  nlohmann::ordered_json json = {{"schema", "tailtrace.items/1"},
                                 {"engine", engine},
                                 {"size", history.size()},
                                 {"gaps", history.gaps()},
                                 {"complete", history.complete()}};
  if (auto stop = history.stop()) json["stop"] = fmt::format("{:#x}", stop->value);
  return json.dump() + "\n";
}

}  // namespace

std::string_view MonitorHistory::help() {
  return "monitor tailtrace instruction-history [RANGE]\n"
         "                                    the thread's last instructions; a range is N, N,M,\n"
         "                                    N,+K, N,-K or -, counted from 1 or back from -1\n"
         "monitor tailtrace items FIRST COUNT [pPID.TID]\n"
         "                                    the same for scripts, as JSON lines\n";
}

Result<std::optional<std::string>> MonitorHistory::answer(std::string_view command) {
  std::string_view rest = command;
  std::string_view verb = next_word(rest);
  Result<std::string> text;
  if (verb == "instruction-history") {
    text = instruction_history(rest);
  } else if (verb == "items") {
    text = items(rest);
  } else {
    return std::optional<std::string>();
  }
  if (!text) return fail(std::move(text.error()));
  return std::optional(std::move(*text));
}

Result<std::string> MonitorHistory::instruction_history(std::string_view words) {
  std::string problem;
  auto made = make_selected(problem);
  if (!made) return fail(std::move(made.error()));
  if (!*made) return problem;
  const History& history = *made_->history;
  if (history.size() == 0) return "No instruction was recorded yet.\n";
  auto range = parse_range(next_word(words), {history.size(), 10, made_->shown});
  if (!range) return range.error().to_string() + "\n";
  made_->shown = *range;
  NoSymbols symbols;
  return instructions_text(history, symbols, *range, {.addresses = true}, kMaxText_bytes);
}

Result<std::string> MonitorHistory::items(std::string_view words) {
  auto first = parse_number(next_word(words));
  auto count = parse_number(next_word(words));
  std::string_view thread_word = next_word(words);
  auto thread = rsp::parse_thread(thread_word);
  if (!first || !count || *first == 0 || (!thread_word.empty() && !thread))
    return refusal(ErrorCode::kUsage, "cannot read the command",
                   "it is not `items FIRST COUNT [pPID.TID]`", "see `monitor tailtrace help`");
  std::string problem;
  auto made =
      thread && thread->is_thread() ? make(thread->thread(), problem) : make_selected(problem);
  if (!made) return fail(std::move(made.error()));
  if (!*made) return problem;
  const History& history = *made_->history;
  std::string text = head_line(history, recorder_.engine().name());
  if (*first > history.size() || *count == 0) return text;
  std::uint64_t held = std::min({*count, kMaxItems, history.size() - *first + 1});
  NoSymbols symbols;
  list_instructions_json(history, symbols, {*first, *first + held - 1}, [&](std::string_view line) {
    text.append(line).push_back('\n');
    return text.size() < kMaxText_bytes;
  });
  return text;
}

Result<bool> MonitorHistory::make_selected(std::string& problem) {
  auto thread = below_.debugger_thread();
  if (!thread) return fail(std::move(thread.error()));
  if (*thread) return make(**thread, problem);
  problem = refusal(ErrorCode::kUsage, "cannot show a history", "no thread is selected",
                    "start the program first");
  return false;
}

Result<bool> MonitorHistory::make(ThreadId id, std::string& problem) {
  RecordedThread* thread = recorder_.find(id);
  if (thread == nullptr) {
    made_.reset();
    problem = refusal(ErrorCode::kUsage, "cannot show a history", "the thread is not recorded",
                      "record btrace");
    return false;
  }
  auto stop = recorder_.settle(*thread);
  if (!stop) return fail(std::move(stop.error()));
  auto head = recorder_.engine().head(id);
  if (!head) return fail(std::move(head.error()));
  if (made_ && made_->thread == id && made_->head == *head && made_->pc == stop->pc) return true;
  auto snapshot = recorder_.snapshot(*thread);
  if (!snapshot) return fail(std::move(snapshot.error()));
  auto shared = std::make_shared<const ThreadSnapshot>(std::move(*snapshot));
  made_ = Made{id, *head, stop->pc, std::make_unique<const History>(std::move(shared)), {}};
  return true;
}

}  // namespace tailtrace
