#include <fmt/format.h>

#include <map>
#include <set>

#include "decoder/bundle/bundle.h"
#include "decoder/history/join.h"
#include "plugin/cli/commands.h"
#include "plugin/cli/count_option.h"
#include "plugin/cli/history_view.h"

namespace tailtrace {
namespace {

struct SaveCommandOptions {
  std::vector<std::string> words;  // recordings, then the folder
  std::string thread;
  std::uint64_t records = ~0ull;
};

// A thread, as several recordings have it, in their order.
using OneThread = std::vector<ThreadSource>;

// The threads of all recordings, in the order in which they are met. One that executed other
// programs is there again for each.
Result<std::vector<OneThread>> threads_to_save(const SaveCommandOptions& options) {
  std::vector<OneThread> threads;
  std::map<std::pair<ThreadId, std::size_t>, std::size_t> places;
  for (std::size_t i = 0; i + 1 < options.words.size(); ++i) {
    Result<std::vector<ThreadSource>> found = asked_threads(options.words[i], options.thread);
    if (!found) return fail(std::move(found.error()));
    for (ThreadSource& source : *found) {
      auto [place, is_new] = places.try_emplace({source.thread, source.program}, threads.size());
      if (is_new) threads.emplace_back();
      threads[place->second].push_back(std::move(source));
    }
  }
  return threads;
}

class Saver {
 public:
  Saver(const SaveCommandOptions& options, BundleWriter& writer, std::FILE* err)
      : options_(options), writer_(writer), err_(err) {}

  Result<void> save(const OneThread& thread) {
    ThreadSnapshot joined;
    std::string maps, perf_map;
    for (const ThreadSource& source : thread) {
      Result<OpenedThread> opened = open_recorded(source, options_.records);
      if (!opened) return fail(std::move(opened.error()));
      say(opened->problems);
      ThreadSnapshot snapshot = History(opened->frame, opened->source, {}).snapshot();
      const auto as_recorded = [&](const std::string& text) {
        return maps_from_copies(text, modules_of(source),
                                source.in_bundle ? source.in_bundle->folder : "");
      };
      snapshot.former_maps = as_recorded(snapshot.former_maps);
      if (&source == &thread.front()) {
        joined = std::move(snapshot);
      } else {
        Result<ThreadSnapshot> longer = join_snapshots(joined, snapshot);
        if (!longer) return fail(std::move(longer.error()));
        joined = std::move(*longer);
      }
      perf_map = std::move(opened->perf_map);
      maps = as_recorded(opened->maps);
      if (Result<void> ok = carry_over(source); !ok) return ok;
    }
    return writer_.add(joined, maps, perf_map);
  }

  // What a recording tells beside the history.
  Result<void> carry_over(const ThreadSource& source) {
    if (source.in_bundle) return writer_.carry_over(*source.in_bundle);
    for (BundleModule& module : modules_of(source))
      if (Result<void> ok = writer_.add_module(std::move(module), ""); !ok) return ok;
    return {};
  }

  void say(const std::vector<Error>& problems) {
    for (const Error& problem : problems)
      if (said_.insert(problem.to_string()).second) fmt::print(err_, "{}\n", problem.to_string());
  }

 private:
  const SaveCommandOptions& options_;
  BundleWriter& writer_;
  std::FILE* err_;
  std::set<std::string> said_;  // what concerns a whole process is said once
};

Result<int> run_save(const SaveCommandOptions& options, const Invocation& invocation) {
  const std::string& folder = options.words.back();
  if (options.words.size() == 1)
    return fail(ErrorCode::kUsage, "cannot save " + folder, "no new folder is named to save it in",
                fmt::format("tailtrace save {} FOLDER", folder));
  Result<std::vector<OneThread>> threads = threads_to_save(options);
  if (!threads) return fail(std::move(threads.error()));
  Result<BundleWriter> writer = BundleWriter::create(folder);
  if (!writer) return fail(std::move(writer.error()));
  Saver saver(options, *writer, invocation.err);
  for (const OneThread& thread : *threads)
    if (Result<void> saved = saver.save(thread); !saved) return fail(std::move(saved.error()));
  if (Result<void> finished = writer->finish(); !finished) return fail(std::move(finished.error()));
  fmt::print(invocation.err, "{}\n", writer->told());
  return kExitDone;
}

}  // namespace

Command save_command() {
  return {
      .name = "save",
      .summary = "Write recordings into a folder that needs nothing else; LLDB loads it as well",
      .usage = "[OPTIONS] PATH... FOLDER",
      .examples =
          {
              {"tailtrace save SESSION run.tt",
               "to be read another day; by LLDB, with `trace load run.tt/trace.json`"},
              {"tailtrace save --thread=4711 SESSION run.tt", "of one thread"},
              {"tailtrace save end.tt.1 end.tt.2 end.tt whole.tt",
               "snapshots, in the order they were taken, as one longer history"},
          },
      .elsewhere = {"merge"},
      .define = [](CLI::App& app) -> RunCommand {
        auto options = std::make_shared<SaveCommandOptions>();
        constexpr int kMostWords = 10'000;
        app.add_option("PATH", options->words,
                       "sessions' or processes' folders, bundles, record streams, perf.data files; "
                       "then the new FOLDER")
            ->expected(1, kMostWords)
            ->required();
        app.add_option("--thread", options->thread, "this one only; all if nothing is said")
            ->type_name(kThreadWord);
        add_count(app, "--records", options->records, "no more than the newest N of each thread");
        return [options](const Invocation& invocation) { return run_save(*options, invocation); };
      },
      .take_program = {},
      .details =
          "Several recordings of one program, as those that the always-on recorder makes of "
          "SIGUSR2, are joined thread by thread: where two of them overlap nothing is doubled, and "
          "where something is missing between them, a gap says so. "
          "LLDB is given the newest 1,000,000 instructions of each thread, and reads the "
          "program's files where they were.",
  };
}

}  // namespace tailtrace
