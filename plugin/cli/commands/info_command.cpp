#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "decoder/base/text.h"
#include "plugin/cli/commands.h"
#include "plugin/cli/info.h"
#include "plugin/cli/recorded_text.h"

namespace tailtrace {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct ThreadFacts {
  ThreadSource thread;
  ThreadFrame frame;
  std::uint64_t records = 0;
  std::uint64_t instructions = 0;
  std::uint64_t gaps = 0;
  std::map<std::string, std::uint64_t> reasons;  // of gaps
  std::optional<Address> stop;
};

ThreadFacts facts_of(const HistoryView& view) {
  const History& history = *view.history;
  ThreadFacts facts;
  facts.thread = view.thread;
  facts.frame = history.frame();
  facts.records = history.record_count();
  facts.instructions = history.instructions();
  facts.gaps = history.gaps();
  facts.stop = history.stop();
  history.each_gap([&](GapReason reason) { ++facts.reasons[std::string(reason_name(reason))]; });
  return facts;
}

// What a bundle tells of the thread beside its history; null: nothing.
const BundleThreadState* state_of(const ThreadSource& thread) {
  if (!thread.in_bundle || !thread.in_bundle->about) return nullptr;
  auto known = thread.in_bundle->about->threads.find(thread.thread);
  return known == thread.in_bundle->about->threads.end() ? nullptr : &known->second;
}

OrderedJson facts_json(const ThreadFacts& facts) {
  const ThreadFrame& frame = facts.frame;
  OrderedJson json = {{"path", facts.thread.path}};
  json.update(thread_json(facts.thread));
  json["engine"] = frame.engine;
  if (!facts.thread.state.empty()) json["state"] = facts.thread.state;
  json["complete"] = frame.complete;
  json["first_record"] = frame.first.value;
  json["records"] = facts.records;
  json["instructions"] = facts.instructions;
  json["gaps"] = facts.gaps;
  if (facts.gaps != 0) json["gap_reasons"] = facts.reasons;
  if (facts.stop) json["stop"] = json_address(*facts.stop);
  if (const BundleThreadState* state = state_of(facts.thread)) {
    if (!state->name.empty()) json["name"] = state->name;
    if (!state->registers.empty()) json["registers"] = registers_json(*state);
  }
  return json;
}

// What is known of records before the oldest one.
std::string older_text(const ThreadFrame& frame) {
  if (frame.complete) return "from the beginning of the recording";
  const std::uint64_t overwritten = overwritten_records(frame);
  if (overwritten == 0) return "what came before is not known";
  return fmt::format("{} older ones overwritten", overwritten);
}

void print_facts(const ThreadFacts& facts, std::FILE* out) {
  const ThreadFrame& frame = facts.frame;
  fmt::print(out, "thread {}\n", thread_text(facts.thread));
  fmt::print(out, "  from          {}\n", printable(facts.thread.path));
  fmt::print(out, "  engine        {}\n", frame.engine);
  if (!facts.thread.state.empty()) fmt::print(out, "  state         {}\n", facts.thread.state);
  fmt::print(out, "  records       {}, {}\n", facts.records, older_text(frame));
  fmt::print(out, "  instructions  {}\n", facts.instructions);
  std::string reasons;
  for (auto& [reason, count] : facts.reasons)
    reasons += fmt::format("{}{} {}", reasons.empty() ? " (" : ", ", count, reason);
  fmt::print(out, "  gaps          {}{}\n", facts.gaps, reasons.empty() ? "" : reasons + ")");
  if (facts.stop) fmt::print(out, "  next at       {:#x}\n", facts.stop->value);
  const BundleThreadState* state = state_of(facts.thread);
  if (state == nullptr) return;
  if (!state->name.empty()) fmt::print(out, "  name          {}\n", printable(state->name));
  std::string_view title = "registers";
  for (const std::string& line : register_lines(*state)) {
    fmt::print(out, "  {:<13} {}\n", title, printable(line));
    title = "";
  }
}

// What the recording tells of itself; null: nothing.
const BundleAbout* about_of(const std::vector<ThreadSource>& threads) {
  return threads.front().in_bundle ? threads.front().in_bundle->about.get() : nullptr;
}

OrderedJson info_json(const BundleAbout* about, OrderedJson threads) {
  OrderedJson json = OrderedJson::object();
  if (about != nullptr && !recorded_json(*about).empty()) json["recorded"] = recorded_json(*about);
  json["threads"] = std::move(threads);
  return json;
}

void print_recorded(const BundleAbout& about, std::FILE* out) {
  std::vector<std::string> lines = recorded_lines(about);
  if (!lines.empty()) fmt::print(out, "recorded\n");
  for (const std::string& line : lines) fmt::print(out, "  {}\n", printable(line));
}

}  // namespace

Result<int> show_info(const HistoryOptions& options, const Invocation& invocation) {
  Result<std::vector<ThreadSource>> threads = asked_threads(options.path, options.thread);
  if (!threads) return fail(std::move(threads.error()));
  OrderedJson list = OrderedJson::array();
  const BundleAbout* about = about_of(*threads);
  if (about != nullptr && options.output->json == JsonForm::kNone)
    print_recorded(*about, invocation.out);
  std::uint64_t gaps = 0;
  std::set<std::string> said;  // what concerns a whole process is said once
  auto say = [&](const std::string& problem) {
    if (said.insert(problem).second) fmt::print(invocation.err, "{}\n", problem);
  };
  const ReadingSettings settings;
  for (const ThreadSource& thread : *threads) {
    Result<HistoryView> view = open_view_of(thread, ~0ull, say, settings);
    if (!view) return fail(std::move(view.error()));
    const ThreadFacts facts = facts_of(*view);
    gaps += facts.gaps;
    if (options.output->json == JsonForm::kNone)
      print_facts(facts, invocation.out);
    else
      list.push_back(facts_json(facts));
  }
  if (options.output->json != JsonForm::kNone)
    print_json(invocation.out, "tailtrace.info/1", info_json(about, std::move(list)),
               options.output->json);
  if (!options.strict || gaps == 0) return kExitDone;
  return fail(ErrorCode::kGaps, "the histories are not whole", fmt::format("{} gap(s)", gaps));
}

void add_info_options(CLI::App& app, HistoryOptions& options) {
  add_path(app, options.path);
  app.add_option("--thread", options.thread, "this one only")->type_name(kThreadWord);
  app.add_flag("--strict", options.strict, "exit with status 6 when there are gaps");
  options.output = add_output_options(app);
}

Command info_command() {
  return {
      .name = "info",
      .summary = "Say what a recording holds: why and when it was made, threads, gaps",
      .usage = "[OPTIONS] PATH",
      .examples =
          {
              {"tailtrace info SESSION", "every thread of it"},
              {"tailtrace info --json SESSION | jq '.threads[].tid'", "in a script"},
              {"tailtrace info --strict SESSION", "exit with status 6 when something is missing"},
          },
      .elsewhere = {"show"},
      .define = [](CLI::App& app) -> RunCommand {
        auto options = std::make_shared<HistoryOptions>();
        add_info_options(app, *options);
        return [options](const Invocation& invocation) { return show_info(*options, invocation); };
      },
      .take_program = {},
      .details = "",
  };
}

}  // namespace tailtrace
