#include <fmt/format.h>

#include <set>

#include "decoder/bundle/bundle.h"
#include "plugin/cli/commands.h"
#include "plugin/cli/history_view.h"

namespace tailtrace {
namespace {

struct Options {
  std::string path, folder, thread;
  std::uint64_t records = ~0ull;
};

Result<int> run_save(const Options& options, const Invocation& invocation) {
  Result<std::vector<ThreadSource>> threads = asked_threads(options.path, options.thread);
  if (!threads) return fail(std::move(threads.error()));
  Result<BundleWriter> writer = BundleWriter::create(options.folder);
  if (!writer) return fail(std::move(writer.error()));
  std::set<std::string> said;  // what concerns a whole process is said once
  for (const ThreadSource& thread : *threads) {
    Result<OpenedThread> opened = open_recorded(thread, options.records);
    if (!opened) return fail(std::move(opened.error()));
    for (const Error& problem : opened->problems)
      if (said.insert(problem.to_string()).second)
        fmt::print(invocation.err, "{}\n", problem.to_string());
    History history(opened->frame, opened->source, {});
    Result<void> added = writer->add(history.snapshot(), opened->maps, opened->perf_map);
    if (!added) return fail(std::move(added.error()));
  }
  for (const Error& remark : writer->remarks())
    fmt::print(invocation.err, "{}\n", remark.to_string());
  if (Result<void> finished = writer->finish(); !finished) return fail(std::move(finished.error()));
  fmt::print(invocation.err, "Saved {} thread{} in {}.\n", threads->size(),
             threads->size() == 1 ? "" : "s", options.folder);
  return kExitDone;
}

}  // namespace

Command save_command() {
  return {
      .name = "save",
      .summary = "Write a recording into a folder that needs nothing else; LLDB loads it as well",
      .usage = "[OPTIONS] PATH FOLDER",
      .examples =
          {
              {"tailtrace save SESSION run.tt",
               "to be read another day; by LLDB, with `trace load run.tt/trace.json`"},
              {"tailtrace save --thread=4711 SESSION run.tt", "of one thread"},
          },
      .define = [](CLI::App& app) -> RunCommand {
        auto options = std::make_shared<Options>();
        add_path(app, options->path);
        app.add_option("FOLDER", options->folder, "a new folder")->required();
        app.add_option("--thread", options->thread, "this one only; all if nothing is said")
            ->type_name("[PID.]TID");
        app.add_option("--records", options->records, "no more than the newest N of each thread")
            ->type_name("N");
        return [options](const Invocation& invocation) { return run_save(*options, invocation); };
      },
      .take_program = {},
      .details =
          "LLDB is given the newest 1,000,000 instructions of each thread, and reads the "
          "program's files where they were.",
  };
}

}  // namespace tailtrace
