#include "plugin/server/monitor.h"

#include <fmt/core.h>

#include <numeric>

#include "decoder/base/file.h"
#include "decoder/base/text.h"
#include "decoder/bundle/bundle.h"
#include "decoder/symbols/generated_files.h"
#include "plugin/server/sizes.h"
#include "plugin/server/thread_stack.h"

namespace tailtrace {
namespace {

constexpr std::string_view kPrefix = "tailtrace";
// Each takes some hundred requests to the server below: of more threads only these are saved.
constexpr std::size_t kMaxStacks = 256;
constexpr std::string_view kHelp =
    "monitor tailtrace help              this\n"
    "monitor tailtrace info              what is recorded of each thread\n"
    "monitor tailtrace save PATH         writes it to a new folder, to be read another day\n";
constexpr std::size_t kMaxMaps_bytes = 16 << 20;

}  // namespace

Result<std::optional<std::string>> Monitor::answer(std::string_view command) {
  if (!command.starts_with(kPrefix)) return std::optional<std::string>();
  std::string_view rest = command.substr(kPrefix.size());
  if (!rest.empty() && rest.front() != ' ') return std::optional<std::string>();
  rest = trim(rest);
  if (rest.empty() || rest == "help") return std::optional(help());
  if (rest == "info") {
    auto text = info();
    if (!text) return fail(std::move(text.error()));
    return std::optional(std::move(*text));
  }
  if (rest.starts_with("save ")) return std::optional(save(std::string(trim(rest.substr(5)))));
  auto text = history_.answer(rest);
  if (!text || *text) return text;
  return std::optional(fmt::format("error: there is no command \"{}\"\n{}", rest, help()));
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
    auto snapshot = recorder_.visible(thread);
    if (!snapshot) {
      failed = fail(std::move(snapshot.error()));
      return;
    }
    std::uint64_t insns = 0;
    for (const BranchRecord& record : snapshot->records) insns += record.insns;
    text += fmt::format("  thread {}.{}: {} instructions in {} records{}\n", thread.id.pid,
                        thread.id.tid, insns, snapshot->records.size(),
                        snapshot->complete ? "" : ", older ones are overwritten");
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
    auto maps = read_file(fmt::format("/proc/{}/maps", thread.id.pid), kMaxMaps_bytes);
    done = writer->add(*snapshot, maps ? as_text(*maps) : std::string_view(),
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
