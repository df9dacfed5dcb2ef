// Exporters: a document in one of the forms that `tailtrace export` writes, made of threads that
// are handed over one after the other.
//
// Threading: one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "decoder/export/sinks.h"
#include "plugin/cli/history_view.h"

namespace tailtrace {

class Exporter {
 public:
  virtual ~Exporter() = default;
  virtual void begin() {}
  // That stretch of the history. Errors: the form cannot hold it. REQUIRES: it is not empty.
  virtual Result<void> add(HistoryView& view, Range range) = 0;
  virtual Result<void> end() { return {}; }
  // What could not be read, and is told.
  virtual std::vector<Error> problems() const { return {}; }
};

struct ExportRequest {
  std::string format;  // one of export_formats()
  std::string source;  // the path of the recording
  std::string file;    // of the program, where one must be chosen; empty: the first executed
};

std::vector<std::string> export_formats();
// REQUIRES of all of these: one of those formats.
// Whether it can be shown on a terminal.
bool is_text_format(const std::string& format);
// Whether it is made of no more than one.
bool holds_one_thread(const std::string& format);
std::unique_ptr<Exporter> make_exporter(const ExportRequest& request, TextSink lines,
                                        ByteSink bytes);

}  // namespace tailtrace
