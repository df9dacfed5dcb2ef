#include "plugin/server/monitor/monitor_history.h"

#include <algorithm>

#include "decoder/base/text.h"
#include "decoder/symbols/deleted_files.h"
#include "decoder/symbols/generated_files.h"
#include "decoder/symbols/process_symbols.h"
#include "plugin/server/recording/thread_stack.h"
#include "plugin/server/rsp/thread_selector.h"

namespace tailtrace {
namespace {

constexpr std::string_view kRecords = "records";

std::unique_ptr<Symbolizer> symbols_of(const ThreadFrame& frame) {
  auto maps = process_maps(frame.thread.pid);
  if (!maps) return std::make_unique<NoSymbols>();
  auto symbols = std::make_unique<ProcessSymbols>(mappings_of(frame.thread.pid, *maps),
                                                  perf_map_of(frame.thread.pid));
  symbols->know_history(frame);
  return symbols;
}

}  // namespace

Result<std::optional<std::string>> MonitorHistory::answer(std::string_view command) {
  if (CommandWords{command}.word() == kRecords) return Text();
  Text text;
  for (Part part : {Part::kNewest, Part::kAll}) {
    auto work = prepare(command, part);
    if (!work) return fail(std::move(work.error()));
    if (!*work || (text = (**work)())) break;
  }
  return text;
}

Result<std::optional<MonitorHistory::Work>> MonitorHistory::prepare(std::string_view words,
                                                                    Part part) {
  CommandWords left{words};
  const HistoryAnswers::Command* command = HistoryAnswers::command_named(left.word());
  if (command == nullptr) return std::optional<Work>();
  std::string problem;
  auto refused = [&problem] { return std::optional<Work>([problem] { return problem; }); };
  auto thread = meant(left.rest, problem);
  if (!thread) return fail(std::move(thread.error()));
  if (!*thread) return refused();
  auto made = make(**thread, std::max(part, command->least), problem);
  if (!made) return fail(std::move(made.error()));
  if (!*made) return refused();
  HistoryAnswers& answers = *made_->answers;
  if (command->needs_stack && !answers.has_stack())
    answers.set_stack(thread_stack(below_, made_->thread));
  return std::optional<Work>([&answers, command, rest = std::string(left.rest)] {
    return answers.answer(*command, rest);
  });
}

void MonitorHistory::abandon() {
  if (made_) made_->answers->abandon();
}

Result<std::optional<ThreadId>> MonitorHistory::meant(std::string_view& words,
                                                      std::string& problem) {
  std::size_t space = words.find_last_of(' ');
  std::string_view last = space == std::string_view::npos ? words : words.substr(space + 1);
  auto named = rsp::parse_thread(last);
  if (named && named->is_thread()) {
    words.remove_suffix(last.size());
    return std::optional(named->thread());
  }
  auto thread = below_.debugger_thread();
  if (thread && !*thread)
    problem = refusal("cannot show a history", "no thread is selected", "start the program first");
  return thread;
}

Result<bool> MonitorHistory::make(ThreadId id, Part part, std::string& problem) {
  RecordedThread* thread = recorder_.find(id);
  if (thread == nullptr) {
    made_.reset();
    problem = refusal("cannot show a history", "the thread is not recorded", "record btrace");
    return false;
  }
  auto stop = recorder_.settle(*thread);
  if (!stop) return fail(std::move(stop.error()));
  auto head = recorder_.engine().head(id);
  if (!head) return fail(std::move(head.error()));
  const bool stands = made_ && made_->thread == id && made_->pc == stop->pc &&
                      made_->answers->facts().head == *head;
  if (stands && made_->answers->facts().part >= part && !made_->answers->is_abandoned())
    return true;
  auto snapshot = recorder_.visible(*thread, part);
  if (!snapshot) return fail(std::move(snapshot.error()));
  auto shared = std::make_shared<const ThreadSnapshot>(std::move(*snapshot));
  auto symbols = symbols_of(*shared);
  auto answers = std::make_unique<HistoryAnswers>(
      std::move(shared), std::move(symbols),
      HistoryAnswers::Facts{recorder_.engine().name(), *head, part});
  if (stands) answers->go_on_from(*made_->answers);
  made_ = Made{id, stop->pc, std::move(answers)};
  return true;
}

}  // namespace tailtrace
