#include "plugin/server/monitor/monitor.h"

#include <fmt/core.h>

#include <numeric>

#include "decoder/base/no_signals.h"
#include "decoder/base/text.h"
#include "decoder/bundle/bundle.h"
#include "decoder/symbols/generated_files.h"
#include "decoder/symbols/mapping.h"
#include "plugin/server/monitor/sizes.h"
#include "plugin/server/recording/thread_stack.h"

namespace tailtrace {
namespace {

constexpr std::string_view kPrefix = "tailtrace";
// Each takes some hundred requests to the server below: of more threads only these are saved.
constexpr std::size_t kMaxStacks = 256;
constexpr std::string_view kHelp =
    "monitor tailtrace help              this\n"
    "monitor tailtrace info              what is recorded of each thread\n"
    "monitor tailtrace save PATH         writes it to a new folder, to be read another day\n";
// Whoever presses Ctrl-C waits so long.
constexpr std::chrono::milliseconds kPatience(300);

}  // namespace

Result<std::optional<std::string>> Monitor::answer(std::string_view command) {
  if (!command.starts_with(kPrefix)) return std::optional<std::string>();
  std::string_view rest = command.substr(kPrefix.size());
  if (!rest.empty() && rest.front() != ' ') return std::optional<std::string>();
  come_to_rest();
  auto text = answer_words(trim(rest));
  if (!text) return fail(std::move(text.error()));
  return std::optional(std::move(*text));
}

Result<std::string> Monitor::answer_words(std::string_view words) {
  if (words.empty() || words == "help") return help();
  if (words == "info") return info();
  if (words.starts_with("save ")) return save(std::string(trim(words.substr(5))));
  auto text = history_.answer(words);
  if (!text) return fail(std::move(text.error()));
  if (*text) return std::move(**text);
  return fmt::format("error: there is no command \"{}\"\n{}", words, help());
}

void Monitor::come_to_rest() {
  abandon();
  if (answer_.valid()) answer_.get();
}

void Monitor::abandon() {
  asked_.reset();
  if (answer_.valid()) history_.abandon();
}

Result<std::optional<std::string>> Monitor::ask(std::string_view command) {
  abandon();
  asked_ = trim(command);
  return go_on();
}

Result<std::optional<std::string>> Monitor::go_on() {
  if (answer_.valid()) {
    if (answer_.wait_for(kPatience) == std::future_status::timeout)
      return std::optional<std::string>();
    MonitorHistory::Text text = answer_.get();
    if (!asked_ && text) return text;
    if (!asked_) return begin(Part::kAll);
  }
  if (!asked_) return std::optional<std::string>("error: nothing was asked for\n");
  begun_ = *std::exchange(asked_, std::nullopt);
  return begin(Part::kNewest);
}

Result<std::optional<std::string>> Monitor::begin(Part part) {
  auto work = history_.prepare(begun_, part);
  if (!work) return fail(std::move(work.error()));
  if (!*work) return answer_words(begun_).map([](auto text) { return std::optional(text); });
  {
    NoSignals inherited;
    answer_ = std::async(std::move(**work));  // at once, where there cannot be another thread
  }
  return go_on();
}

std::string Monitor::help() { return std::string(kHelp).append(MonitorHistory::help()); }

Result<std::string> Monitor::info() {
  if (recorder_.empty()) return "Nothing is recorded: use `record btrace`.\n";
  std::string_view engine = recorder_.engine().name();
  Reader reader = lldb_.is_lldb() ? Reader::kLldb : Reader::kGdb;
  const bool counts_branches = recorder_.engine().counts_branches();
  std::string text = fmt::format("{}\nRecorded by the {} engine:\n",
                                 sizes_in_words(options_, counts_branches, reader), engine);
  Result<void> failed;
  recorder_.for_each([&](RecordedThread& thread) {
    Part part = Part::kNewest;
    auto snapshot = recorder_.visible(thread, part);
    if (!snapshot) {
      failed = fail(std::move(snapshot.error()));
      return;
    }
    std::uint64_t insns = 0;
    for (const BranchRecord& record : snapshot->records) insns += record.insns;
    std::string_view older;
    if (part == Part::kNewest)
      older = ", older ones are not counted";
    else if (!snapshot->complete)
      older = ", older ones are overwritten";
    text += fmt::format("  thread {}.{}: {} instructions in {} records{}\n", thread.id.pid,
                        thread.id.tid, insns, snapshot->records.size(), older);
  });
  if (!failed) return fail(std::move(failed.error()));
  return text;
}

// A name from the debugger's side: a refusal is an answer, and ends nothing.
std::string Monitor::save(const std::string& path) {
  Result<BundleWriter> writer = BundleWriter::create(path);
  Result<void> done;
  if (!writer) done = fail(std::move(writer.error()));
  BundleAbout about;
  recorder_.for_each([&](RecordedThread& thread) {
    if (!done) return;
    auto snapshot = recorder_.visible(thread);
    if (!snapshot) {
      done = fail(std::move(snapshot.error()));
      return;
    }
    done = writer->add(*snapshot, process_maps(thread.id.pid).value_or(""),
                       perf_map_of(thread.id.pid));
    if (about.threads.size() < kMaxStacks)
      about.threads[thread.id].stack = thread_stack(below_, thread.id);
  });
  if (done) {
    writer->describe(std::move(about));
    done = writer->finish();
  }
  if (!done) return done.error().to_string() + "\n";
  return writer->told() + "\n";
}

}  // namespace tailtrace
