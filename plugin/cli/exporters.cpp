#include "plugin/cli/exporters.h"

#include <fmt/format.h>

#include <optional>

#include "decoder/base/bytes.h"
#include "decoder/export/arrow_file.h"
#include "decoder/export/chrome_trace.h"
#include "decoder/export/drcov.h"
#include "decoder/export/folded_stacks.h"
#include "decoder/export/html_page.h"
#include "decoder/export/numpy_file.h"
#include "decoder/export/perfetto_trace.h"
#include "decoder/export/preaggregated.h"
#include "decoder/perf_data/export.h"
#include "decoder/symbols/elf_file.h"
#include "decoder/symbols/mapping.h"
#include "plugin/server/gdb/btrace_documents.h"

namespace tailtrace {
namespace {

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
  Result<void> end() override {
    end_chrome_trace(sink_);
    return {};
  }

 private:
  TextSink sink_;
};

class PerfettoExporter final : public CallExporter {
 public:
  explicit PerfettoExporter(ByteSink sink) : trace_(std::move(sink)) {}
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
  Result<void> end() override {
    page_.end();
    return {};
  }

 private:
  HtmlPage page_;
  std::string source_;
};

class PerfExporter final : public Exporter {
 public:
  explicit PerfExporter(ByteSink sink) : sink_(std::move(sink)) {}
  // Of the newest items, as perf has no other way to say where a trace begins.
  Result<void> add(HistoryView& view, Range range) override {
    if (range.last != view.history->newest())
      return fail(ErrorCode::kUsage, "cannot write those items as perf.data",
                  "only a range that ends with the newest item can be", "--range=-N,-1");
    const bool is_all = range.first == view.history->oldest();
    return data_.add(
        *view.history, [&](Epoch when) { return view.symbols->mappings_in(when); },
        is_all ? ~0ull : range.size());
  }
  Result<void> end() override {
    (void)sink_(as_text(data_.finish()));
    return {};
  }
  std::vector<Error> problems() const override { return data_.problems(); }

 private:
  perf::PerfDataExport data_;
  ByteSink sink_;
};

class NumpyExporter final : public Exporter {
 public:
  explicit NumpyExporter(ByteSink sink) : sink_(std::move(sink)) {}
  Result<void> add(HistoryView& view, Range range) override {
    write_numpy_records(*view.history, range, sink_);
    return {};
  }

 private:
  ByteSink sink_;
};

class ArrowExporter final : public Exporter {
 public:
  explicit ArrowExporter(ByteSink sink) : file_(std::move(sink)) {}
  void begin() override { file_.begin(); }
  Result<void> add(HistoryView& view, Range range) override {
    file_.add(*view.history, range);
    return {};
  }
  Result<void> end() override {
    file_.end();
    return {};
  }

 private:
  ArrowFile file_;
};

// What our server answers GDB's qXfer:btrace:read with.
class BtraceExporter final : public Exporter {
 public:
  explicit BtraceExporter(ByteSink sink) : sink_(std::move(sink)) {}
  Result<void> add(HistoryView& view, Range range) override {
    const History& history = *view.history;
    if (range.size() != history.size())
      return fail(ErrorCode::kUsage, "cannot write those items as btrace",
                  "the document is of a whole recording", "leave out --range");
    ThreadSnapshot snapshot = history.snapshot();
    std::optional<Address> stop = history.stop();
    if (stop && snapshot.records.back().kind != RecordKind::kDisable) {
      BranchRecord end;
      end.from = *stop;
      end.kind = RecordKind::kDisable;
      end.flags = kFlagSynthetic | kFlagAsync;
      snapshot.records.push_back(end);
    }
    write_bts_document(bts_blocks(snapshot), sink_);
    return {};
  }

 private:
  ByteSink sink_;
};

class DrcovExporter final : public Exporter {
 public:
  explicit DrcovExporter(ByteSink sink) : sink_(std::move(sink)) {}
  Result<void> add(HistoryView& view, Range range) override {
    file_.add(*view.history, range,
              [&](Epoch when) { return loaded_files(view.symbols->mappings_in(when)); });
    return {};
  }
  Result<void> end() override {
    file_.write(sink_);
    return {};
  }

 private:
  // A file is mapped in pieces, one behind the other, and may be loaded at several places.
  static std::vector<LoadedFile> loaded_files(const std::vector<Mapping>& mappings) {
    std::vector<LoadedFile> files;
    std::optional<std::uint64_t> newest;
    for (const Mapping& mapping : mappings) {
      if (mapping.path.starts_with('[')) continue;
      const auto elf = ElfFile::open(mapping.path);
      const auto bias = elf ? load_bias(elf->segments(), mappings, mapping) : std::nullopt;
      const bool is_elsewhere = bias && newest && bias != newest;  // holes have none
      if (files.empty() || files.back().path != mapping.path || is_elsewhere) {
        files.push_back({mapping.begin, mapping.end, mapping.path});
        newest.reset();
      }
      files.back().end = mapping.end;
      if (bias) newest = bias;
    }
    return files;
  }

  DrcovFile file_;
  ByteSink sink_;
};

// For what optimises programs by it.
class ProfileExporter final : public Exporter {
 public:
  using List = void (PreaggregatedProfile::*)(const TextSink&) const;

  ProfileExporter(TextSink sink, std::string file, List list)
      : sink_(std::move(sink)), file_(std::move(file)), list_(list) {}
  Result<void> add(HistoryView& view, Range range) override {
    CodeRuns all;
    add_code_runs(*view.history, range, all);
    if (file_.empty()) file_ = program_of(view, all);
    if (!profile_) profile_.emplace(file_);
    if (!file_.empty()) profile_->add(all, *view.symbols);
    return {};
  }
  Result<void> end() override {
    if (profile_ && !profile_->empty()) {
      ((*profile_).*list_)(sink_);
      return {};
    }
    return fail(ErrorCode::kUsage,
                "cannot write a profile of " + (file_.empty() ? "the program" : file_),
                "nothing of that file was executed",
                file_.empty() ? "--file=NAME" : "the name of an executed file, or leave it out");
  }

 private:
  // Of the files that were executed, but for the dynamic linker, the one that is mapped first.
  static std::string program_of(HistoryView& view, const CodeRuns& all) {
    for (const auto& [run, times] : all.runs) {  // by address
      const std::string& file = view.symbols->function_in(run.first, run.epoch).module;
      if (file.starts_with('/') && !base_name(file).starts_with("ld-linux")) return file;
    }
    return {};
  }

  TextSink sink_;
  std::string file_;
  List list_;
  std::optional<PreaggregatedProfile> profile_;
};

struct Form {
  const char* name;
  bool is_text, holds_one_thread;
  std::unique_ptr<Exporter> (*make)(const ExportRequest&, TextSink, ByteSink);
};

template <class T>
std::unique_ptr<Exporter> of_lines(const ExportRequest&, TextSink lines, ByteSink) {
  return std::make_unique<T>(std::move(lines));
}

template <class T>
std::unique_ptr<Exporter> of_bytes(const ExportRequest&, TextSink, ByteSink bytes) {
  return std::make_unique<T>(std::move(bytes));
}

std::unique_ptr<Exporter> html_page(const ExportRequest& request, TextSink lines, ByteSink) {
  return std::make_unique<HtmlExporter>(std::move(lines), request.source);
}

template <ProfileExporter::List list>
std::unique_ptr<Exporter> profile(const ExportRequest& request, TextSink lines, ByteSink) {
  return std::make_unique<ProfileExporter>(std::move(lines), request.file, list);
}

constexpr Form kForms[] = {
    {"folded", true, false, of_lines<FoldedExporter>},
    {"chrome", true, false, of_lines<ChromeExporter>},
    {"perfetto", false, false, of_bytes<PerfettoExporter>},
    {"html", true, false, html_page},
    {"perf-data", false, false, of_bytes<PerfExporter>},
    {"drcov", false, false, of_bytes<DrcovExporter>},
    {"bolt", true, false, profile<&PreaggregatedProfile::list>},
    {"autofdo", true, false, profile<&PreaggregatedProfile::list_for_autofdo>},
    {"arrow", false, false, of_bytes<ArrowExporter>},
    {"npy", false, true, of_bytes<NumpyExporter>},
    {"btrace", true, true, of_bytes<BtraceExporter>},
};

const Form* form_of(const std::string& name) {
  for (const Form& form : kForms)
    if (name == form.name) return &form;
  return nullptr;
}

}  // namespace

std::vector<std::string> export_formats() {
  std::vector<std::string> names;
  for (const Form& form : kForms) names.emplace_back(form.name);
  return names;
}

bool is_text_format(const std::string& format) { return form_of(format)->is_text; }

bool holds_one_thread(const std::string& format) { return form_of(format)->holds_one_thread; }

std::unique_ptr<Exporter> make_exporter(const ExportRequest& request, TextSink lines,
                                        ByteSink bytes) {
  return form_of(request.format)->make(request, std::move(lines), std::move(bytes));
}

}  // namespace tailtrace
