#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "decoder/export/chrome_trace.h"
#include "decoder/export/folded_stacks.h"
#include "decoder/export/html_page.h"
#include "decoder/export/perfetto_trace.h"
#include "decoder/perf_data/export.h"
#include "plugin/cli/commands.h"
#include "plugin/cli/help.h"
#include "plugin/cli/question.h"

namespace tailtrace {
namespace {

const std::vector<std::string> kFormats = {"folded", "chrome", "perfetto", "html", "perf-data"};

struct Options {
  QuestionOptions question;
  std::string format;
  std::string output;
};

// Where the export goes: a new file that only its user can read, or what the program prints to.
class Destination {
 public:
  static Result<Destination> open(const std::string& path, std::FILE* out) {
    Destination destination;
    destination.file_ = out;
    if (path.empty()) return destination;
    std::FILE* file = std::fopen(path.c_str(), "wxe");
    if (file == nullptr) return fail(system_error("cannot write " + path));
    destination.own_.reset(file);
    destination.file_ = file;
    destination.path_ = path;
    return destination;
  }

  TextSink sink() {
    return [file = file_](std::string_view line) {
      fmt::print(file, "{}\n", line);
      return std::ferror(file) == 0;
    };
  }

  PerfettoTrace::Sink bytes_sink() {
    return [file = file_](std::string_view bytes) {
      return std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
    };
  }
  // Bytes are not for a terminal.
  bool is_terminal() const { return ::isatty(::fileno(file_)) == 1; }

  // Errors: what was written did not arrive; the file is gone then.
  Result<void> close() {
    if (!own_) return {};
    bool failed = std::ferror(file_) != 0;
    errno = 0;
    failed |= std::fclose(own_.release()) != 0;
    if (!failed) return {};
    Error error = system_error("cannot write " + path_);
    std::remove(path_.c_str());
    return fail(std::move(error));
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> own_;
  std::FILE* file_ = nullptr;
  std::string path_;
};

// A document in one of the formats: begin(), threads, end().
class Exporter {
 public:
  virtual ~Exporter() = default;
  virtual void begin() {}
  // That stretch of the history. REQUIRES: it is not empty.
  virtual Result<void> add(HistoryView& view, Range range) = 0;
  virtual void end() {}
};

// Of calls.
class CallExporter : public Exporter {
 public:
  Result<void> add(HistoryView& view, Range range) final {
    Result<CallHistory> calls = CallHistory::make(*view.history, *view.symbols, range);
    if (!calls) return fail(std::move(calls.error()));
    add_calls(view, *calls, range);
    return {};
  }

 protected:
  virtual void add_calls(HistoryView& view, const CallHistory& calls, Range range) = 0;
};

class FoldedExporter final : public CallExporter {
 public:
  explicit FoldedExporter(TextSink sink) : sink_(std::move(sink)) {}
  void add_calls(HistoryView&, const CallHistory& calls, Range) override {
    list_folded_stacks(calls, sink_);
  }

 private:
  TextSink sink_;
};

class ChromeExporter final : public CallExporter {
 public:
  explicit ChromeExporter(TextSink sink) : sink_(std::move(sink)) {}
  void begin() override { begin_chrome_trace(sink_); }
  void add_calls(HistoryView& view, const CallHistory& calls, Range) override {
    list_chrome_trace(calls, view.thread.thread, sink_);
  }
  void end() override { end_chrome_trace(sink_); }

 private:
  TextSink sink_;
};

class PerfettoExporter final : public CallExporter {
 public:
  explicit PerfettoExporter(PerfettoTrace::Sink sink) : trace_(std::move(sink)) {}
  void begin() override { trace_.begin(); }
  void add_calls(HistoryView& view, const CallHistory& calls, Range) override {
    trace_.add(calls, view.thread.thread);
  }

 private:
  PerfettoTrace trace_;
};

class HtmlExporter final : public CallExporter {
 public:
  HtmlExporter(TextSink sink, const std::string& source)
      : page_(std::move(sink)), source_(source) {}
  void begin() override { page_.begin(source_); }
  void add_calls(HistoryView& view, const CallHistory& calls, Range range) override {
    page_.add(*view.history, calls, find_loops(*view.history, range), *view.symbols);
  }
  void end() override { page_.end(); }

 private:
  HtmlPage page_;
  std::string source_;
};

class PerfExporter final : public Exporter {
 public:
  explicit PerfExporter(PerfettoTrace::Sink sink) : sink_(std::move(sink)) {}
  // Of the newest items, as perf has no other way to say where a trace begins.
  Result<void> add(HistoryView& view, Range range) override {
    if (range.last != view.history->newest())
      return fail(ErrorCode::kUsage, "cannot write those items as perf.data",
                  "only a range that ends with the newest item can be", "--range=-N,-1");
    const bool is_all = range.first == view.history->oldest();
    return data_.add(*view.history, view.symbols->mappings(), is_all ? ~0ull : range.size());
  }
  void end() override { (void)sink_(as_text(data_.finish())); }

 private:
  perf::PerfDataExport data_;
  PerfettoTrace::Sink sink_;
};

std::unique_ptr<Exporter> exporter_of(const Options& options, Destination& destination) {
  if (options.format == "folded") return std::make_unique<FoldedExporter>(destination.sink());
  if (options.format == "chrome") return std::make_unique<ChromeExporter>(destination.sink());
  if (options.format == "html")
    return std::make_unique<HtmlExporter>(destination.sink(), options.question.shared.path);
  if (options.format == "perf-data")
    return std::make_unique<PerfExporter>(destination.bytes_sink());
  return std::make_unique<PerfettoExporter>(destination.bytes_sink());
}

Result<void> export_thread(const Options& options, HistoryView& view, Exporter& exporter) {
  Result<Range> range = asked_range(options.question, *view.history);
  if (!range) return fail(std::move(range.error()));
  if (options.format == "html" && options.question.shared.range.empty())
    range->first += range->size() - std::min(range->size(), kPageItems);
  return range->size() != 0 ? exporter.add(view, *range) : Result<void>();
}

Result<int> run_export(const Options& options, const Invocation& invocation) {
  Result<Destination> destination = Destination::open(options.output, invocation.out);
  if (!destination) return fail(std::move(destination.error()));
  bool is_text = options.format != "perfetto" && options.format != "perf-data";
  if (!is_text && destination->is_terminal())
    return fail(ErrorCode::kUsage, fmt::format("cannot write {} to a terminal", options.format),
                "it is no text", "-o FILE");
  std::unique_ptr<Exporter> exporter = exporter_of(options, *destination);
  exporter->begin();
  Result<std::uint64_t> gaps =
      each_thread(options.question, invocation.err,
                  [&](HistoryView& view, bool) { return export_thread(options, view, *exporter); });
  if (gaps) exporter->end();
  Result<void> closed = destination->close();
  if (!gaps) {
    // Half of it would be taken for all.
    if (!options.output.empty()) std::remove(options.output.c_str());
    return fail(std::move(gaps.error()));
  }
  if (!closed) return fail(std::move(closed.error()));
  return question_status(true, *gaps, options.question);
}

}  // namespace

Command export_command() {
  return {
      .name = "export",
      .summary = "Write the calls of a recording for other programs: flame graphs, timelines",
      .usage = "--format=FORMAT [OPTIONS] PATH",
      .examples =
          {
              {"tailtrace export --format=folded SESSION | flamegraph.pl", "a flame graph"},
              {"tailtrace export --format=chrome -o calls.json SESSION",
               "a timeline, for Perfetto's viewer or chrome://tracing"},
              {"tailtrace export --format=perfetto -o calls.pftrace SESSION",
               "the same in Perfetto's own form, smaller"},
              {"tailtrace export --format=html -o calls.html SESSION",
               "a timeline to zoom and search, in one page for any browser"},
              {"tailtrace export --format=perf-data -o perf.data SESSION",
               "for `perf script --itrace=i1i` and what else reads Intel PT of perf's"},
              {"tailtrace export --format=chrome --range=-100000,-1 SESSION", "of the newest part"},
          },
      .define = [](CLI::App& app) -> RunCommand {
        auto options = std::make_shared<Options>();
        HistoryOptions& shared = options->question.shared;
        shared.output = std::make_shared<OutputOptions>();
        add_path(app, shared.path);
        app.add_option("--format", options->format, "what to write")
            ->check(CLI::IsMember(kFormats))
            ->type_name(choice_type(kFormats))
            ->required();
        app.add_option("-o,--output", options->output,
                       "a new file; the standard output if not given")
            ->type_name("FILE");
        app.add_option("--thread", shared.thread, "this one only; all if nothing is said")
            ->type_name("[PID.]TID");
        app.add_option("--range", shared.range, std::string("of these items only: ") + kRangeHelp)
            ->type_name("RANGE");
        app.add_option("--records", shared.records, "look at no more than the newest N records")
            ->type_name("N");
        app.add_flag("--strict", shared.strict, "exit with status 6 when there are gaps");
        return [options](const Invocation& invocation) { return run_export(*options, invocation); };
      },
      .take_program = {},
      .details =
          "folded: a line for each stack of calls, with the instructions that were executed in it. "
          "chrome: the calls of each thread as slices of a timeline whose clock is the count of "
          "executed instructions, one for a microsecond. perfetto: the same as a stream of track "
          "events. html: a page that needs no network, with the calls and loops of the newest "
          "1000000 instructions of each thread, unless --range says otherwise, and 200000 calls at "
          "most. These hold 500 levels of calls at most. "
          "perf-data: what was executed as Intel PT in a file of perf's; perf reads the code from "
          "the files that the program had mapped, so what ran elsewhere is a break there. "
          "`tailtrace coverage --lcov` and `tailtrace history --json` are exports as well.",
  };
}

}  // namespace tailtrace
