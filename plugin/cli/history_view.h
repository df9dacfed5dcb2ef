// HistoryView: what the commands over a recorded thread share: their options, the thread opened,
// and how they print lines.
//
// Threading: one thread at a time.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "decoder/history/listing.h"
#include "decoder/symbols/process_symbols.h"
#include "plugin/cli/command.h"
#include "plugin/cli/history_input.h"
#include "plugin/cli/output_options.h"

namespace tailtrace {

class Answering;

struct HistoryOptions {
  std::string path;
  std::string thread;
  std::string range;
  std::uint64_t records = ~0ull;
  std::string cache = "256MiB";
  bool debuginfod = false;
  bool forward = false;
  bool strict = false;
  std::shared_ptr<OutputOptions> output;
};

// Adds PATH, RANGE, --thread, and what add_thread_options adds.
void add_history_options(CLI::App& app, HistoryOptions& options);

// The single ones, for commands with other words.
void add_path(CLI::App& app, std::string& path);
void add_thread_options(CLI::App& app, HistoryOptions& options);
// --records, --cache and --debuginfod.
void add_reading_options(CLI::App& app, HistoryOptions& options);

// The names that a view has had last, for the next one of the same process.
struct LastSymbols {
  std::string maps, former_maps, perf_map;
  std::shared_ptr<const CodeImage> code;
  std::shared_ptr<ProcessSymbols> symbols;
};

// How histories are to be read, and names that are not here.
struct ReadingSettings : HistorySettings {
  DebugFetch fetch = {};
  std::shared_ptr<LastSymbols> last = std::make_shared<LastSymbols>();
};

// Errors: as parse_size and ask_debuginfod.
Result<ReadingSettings> settings_of(const HistoryOptions& options);
constexpr char kRangeHelp[] = "N  N,M  N,+K  N,-K  all; N below 0 counts from the newest";

// take_program of commands with a RANGE: one like "-50,-1" or "-" would pass for an option.
Result<std::vector<std::string>> take_range(std::vector<std::string>& args);

// A thread's history, with names.
struct HistoryView {
  ThreadSource thread;
  std::shared_ptr<const History> history;
  std::shared_ptr<ProcessSymbols> symbols;
  std::vector<Address> stack;  // where it ends: OpenedThread's
};

// The thread's history. `say` is told what of it cannot be read, as long as the view lives: names
// are read when they are needed. Errors: as open_recorded.
Result<HistoryView> open_view_of(ThreadSource thread, std::uint64_t limit_records,
                                 const std::function<void(const std::string&)>& say,
                                 const ReadingSettings& settings = {});

// Whether what a command shows can be found from the newest item on, without counting all.
bool is_near_newest(const HistoryOptions& options);

// Opens what is asked for; says on `err` what of it cannot be read, and which thread it is when
// there are others. `answering` watches what is made of it, if it is given. Errors: as
// recorded_threads, pick_thread, open_recorded.
Result<HistoryView> open_view(const HistoryOptions& options, std::FILE* err,
                              HistorySettings::Numbers numbers = {},
                              Answering* answering = nullptr);

// Everything but the schema that a document about a history begins with.
nlohmann::ordered_json view_json(const HistoryView& view);

// How many records were before the oldest that is held; 0 as well when that is not known.
std::uint64_t overwritten_records(const ThreadFrame& frame);
// Behind a count of what is held: that there was more. Nothing for 0.
std::string overwritten_text(std::uint64_t records);

// Prints a line of a listing; with colour headers and gaps are marked.
void print_line(std::string_view line, bool color, std::FILE* out);
// Prints the lines of a lister. Ctrl-C ends that behind a line, which is said.
void print_lines(const std::function<void(const LineSink&)>& lister, const OutputOptions& output,
                 std::FILE* out);

// What one JSON document has at most, and what is said of one that would have more.
constexpr std::size_t kMaxDocumentItems = 1 << 20;
Error document_too_long();

// Prints the objects of a JSON lister: under `key` of a document that begins as `head`, or a line
// each after `head`. Ctrl-C ends that behind an object, which is said, and by a document too:
// "interrupted" is true. Errors: kUsage when a document would have too many.
Result<void> print_objects(const std::function<void(const LineSink&)>& lister,
                           std::string_view schema, const nlohmann::ordered_json& head,
                           const char* key, const OutputOptions& output, std::FILE* out);

// The exit status: kGaps is an error with --strict.
Result<int> view_status(const HistoryView& view, const HistoryOptions& options);

}  // namespace tailtrace
