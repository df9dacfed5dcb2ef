#include "plugin/lldb/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "plugin/lldb/back.h"
#include "plugin/lldb/lldb_bundle.h"
#include "plugin/lldb/loaded.h"
#include "plugin/lldb/native.h"
#include "plugin/lldb/override.h"
#include "plugin/lldb/paging.h"
#include "plugin/lldb/positions.h"
#include "plugin/lldb/source.h"

namespace tailtrace::lldb_plugin {
namespace {

constexpr std::uint64_t kFrames = 50;
constexpr std::int64_t kShown = 10;  // instructions and calls
constexpr std::size_t kMany = 64;    // options and words of the command line

std::string joined(const Words& words) { return fmt::format("{}", fmt::join(words, " ")); }

Result<void> show(Session& session, Result<std::string> text) {
  if (!text) return fail(std::move(text.error()));
  session.print(*text);
  return {};
}

tl::unexpected<Error> misused(std::string_view name) {
  return fail(ErrorCode::kUsage, fmt::format("cannot read the words of `tailtrace {}`", name),
              "they are not what the command takes", fmt::format("help tailtrace {}", name));
}

Result<std::uint64_t> count_in(const Words& words, std::size_t at, std::uint64_t otherwise) {
  if (words.size() <= at) return otherwise;
  char* end = nullptr;
  std::uint64_t count = std::strtoull(words[at].c_str(), &end, 10);
  if (*end == '\0' && count > 0 && count <= 10'000) return count;
  return fail(ErrorCode::kUsage, fmt::format("cannot show {} of them", words[at]),
              "it is no number from 1 to 10000");
}

// Where what is asked about stands in the past; 0 in the present. Nothing stands in a folder.
std::int64_t here(Session& session) {
  return has_recording(session) || has_native(session) ? 0 : standing(session);
}

Result<void> source(Session& session, const Words& words) {
  if (!words.empty() && words[0] == "-") return show_older_source(session);
  auto count = count_in(words, 0, kSourcePage);
  return count ? show_source(session, *count, here(session)) : fail(std::move(count.error()));
}

// The position whose calls are shown when none is named.
std::string position_here(Session& session) {
  const std::int64_t stands = here(session);
  return fmt::format("{}", stands == 0 ? -1 : stands);
}

Result<void> stack(Session& session, const Words& words) {
  if (words.size() > 2) return misused("stack");
  const std::string position = words.empty() ? position_here(session) : words[0];
  if (auto known = position_back(session, position); !known) return fail(std::move(known.error()));
  auto count = count_in(words, 1, kFrames);
  if (!count) return fail(std::move(count.error()));
  return show(session, session.monitor_thread(fmt::format("stack {} {}", position, *count)));
}

Result<void> refuse_in_folder(Session& session) {
  const bool is_open = has_recording(session);
  if (!is_open && !is_loaded(session.target().GetProcess())) return {};
  return fail(ErrorCode::kNegative, "cannot stand anywhere in a recording",
              is_open ? "a folder is open, and it has no process that could"
                      : "it was loaded, and has no process that could",
              is_open ? "tailtrace close, then it is the process that goes there" : "",
              "tailtrace stack POSITION shows the calls that led to one");
}

// Whatever moves the process.
template <auto kStep>
Result<void> step(Session& session, const Words&) {
  auto allowed = refuse_in_folder(session);
  return allowed ? kStep(session) : std::move(allowed);
}

Result<void> go(Session& session, const Words& words) {
  if (auto allowed = refuse_in_folder(session); !allowed) return allowed;
  auto position = position_back(session, words[0]);
  return position ? go_to(session, *position) : fail(std::move(position.error()));
}

// LLDB's own bundle stands in the same folder, if it is LLDB that has the thread traced.
Result<void> save(Session& session, const Words& words) {
  if (has_recording(session)) return ask_recording(session, "save", words);
  if (has_native(session)) return show(session, save_native(session, words[0]));
  auto said = session.monitor("save " + words[0]);
  bool is_elsewhere = !said && said.error().code == ErrorCode::kNoEngine;
  if (is_elsewhere && session.target().GetTrace().IsValid())
    return show(session, save_by_lldb(session, words[0]));
  if (said && session.target().GetTrace().IsValid()) {
    auto by_lldb = save_by_lldb(session, words[0]);
    if (!by_lldb) return fail(std::move(by_lldb.error()));
    *said += *by_lldb;
  }
  return show(session, std::move(said));
}

// Ranges begin with what no function's name begins with.
bool is_range(const std::string& word) {
  return !word.empty() && std::string_view("+-0123456789").find(word[0]) != std::string_view::npos;
}

// Without a range the server goes on behind what it has shown, as GDB does; here Enter goes back
// from where the thread stands.
Result<void> page(Session& session, const std::string& command, const Words& words,
                  Result<std::int64_t> newest) {
  if (!words.empty()) return show(session, session.monitor_thread(command + " " + joined(words)));
  if (!newest) return fail(std::move(newest.error()));
  const std::string range = fmt::format(" {},{}", *newest - kShown + 1, *newest);
  auto text = session.monitor_thread(command + range);
  // Whoever stands at its begin has nothing behind him.
  const bool is_begin = !text && *newest < -1 && text.error().code == ErrorCode::kNegative;
  return show(session,
              is_begin ? Result<std::string>("The history begins here.\n") : std::move(text));
}

Result<void> instructions(Session& session, const Words& words) {
  return page(session, "instruction-history /fs", words, here(session) - 1);
}

// Back from -1, the call that holds an item. Errors: as the server has them.
Result<std::int64_t> call_holding(Session& session, std::int64_t item) {
  constexpr std::int64_t kPiece = 1000, kMost = 100'000;
  for (std::int64_t first = -kPiece; item != 0 && first >= -kMost; first -= kPiece) {
    auto lines = session.monitor_json(fmt::format("calls {} {}", first, kPiece));
    if (!lines) return fail(std::move(lines.error()));
    for (auto call = lines->rbegin(); call != lines->rend(); ++call)
      if (call->value("first", std::int64_t{1}) <= item) return call->value("position", item);
    if (lines->size() <= kPiece) break;
  }
  return -1;
}

Result<void> calls(Session& session, const Words& words) {
  if (!words.empty() && !is_range(words[0])) return ask_recording(session, "calls", words);
  return page(session, "function-call-history", words, call_holding(session, here(session)));
}

Result<void> info(Session& session, const Words&) { return show(session, session.monitor("info")); }

Result<void> override_or_not(Session& session, const Words& words) {
  if (words[0] == "on" || words[0] == "off") return override_commands(session, words[0] == "on");
  return misused("override");
}

// What the processor does not record, our server does.
tl::unexpected<Error> needs_our_server(Error refused) {
  refused.fix = fmt::format(
      "{}{}export LLDB_DEBUGSERVER_PATH=$(command -v tailtrace-lldb-server), "
      "then start LLDB: it records anywhere",
      refused.fix, refused.fix.empty() ? "" : "; or ");
  return fail(std::move(refused));
}

// LLDB keeps processes that have ended, and those that it has let go.
bool has_process(Session& session) {
  const lldb::StateType state = session.target().GetProcess().GetState();
  return state != lldb::eStateInvalid && state != lldb::eStateUnloaded &&
         state != lldb::eStateDetached && state != lldb::eStateExited;
}

// The debug server, where it is ours, says how much will be kept. Another one may be able to
// record, too, by LLDB's own commands.
Result<void> start(Session& session, const Words&) {
  if (!has_process(session))
    return fail(ErrorCode::kNegative, "cannot record", "there is no process", "run");
  auto refused = session.monitor("info");
  bool is_other = !refused && refused.error().code == ErrorCode::kNoEngine;
  Result<void> native = is_other ? start_native(session) : Result<void>();
  if (is_other && native) return {};
  auto started = session.command("process trace start --tsc");
  if (!started)
    return is_other ? needs_our_server(std::move(native.error()))
                    : fail(std::move(started.error()));
  return show(session, is_other ? std::move(started) : session.monitor("info"));
}

Result<void> stop(Session& session, const Words&) {
  if (!has_native(session)) return show(session, session.command("process trace stop"));
  stop_native(session);
  return {};
}

constexpr std::array kRows = {
    Row{"start", nullptr, "", "Record all threads of the process from here on.", "", 0, 0, start},
    Row{"stop", nullptr, "", "Stop recording, and drop the history.", "", 0, 0, stop},
    Row{"info", "info", "[OPTIONS]", "What is recorded of each thread, and by which engine.", "", 0,
        kMany, info},
    Row{"instructions", "history", "[OPTIONS] [N | N,M | N,+K | N,-K | -]",
        "The instructions that led here, loops folded, gaps explained; Enter goes on backwards.",
        "tailtrace instructions -", 0, kMany, instructions},
    Row{"source", nullptr, "[COUNT | -]",
        "The source lines that led here, loops folded, gaps explained; Enter goes on backwards.",
        "tailtrace source -", 0, 1, source},
    Row{"calls", "calls", "[OPTIONS] [N | N,M | N,+K | N,-K | - | FUNCTION]",
        "The functions that led here, indented by level; Enter goes on backwards.",
        "tailtrace calls -", 0, kMany, calls},
    Row{"stack", "last", "[OPTIONS] [POSITION [COUNT]]",
        "The calls that led to a position, innermost first; without one, to where it stands.", "",
        0, kMany, stack},
    Row{"last", "last", "[OPTIONS] LOCATION",
        "When FUNCTION, FILE:LINE, *ADDRESS or MODULE+OFFSET was reached last, by which calls.", "",
        1, kMany, nullptr},
    Row{"hits", "hits", "[OPTIONS] LOCATION [COUNT]", "When it was reached, the newest times.", "",
        1, kMany, nullptr},
    Row{"why", "why", "[OPTIONS] [LOCATION]", "The branches that decided that it came there.", "",
        0, kMany, nullptr},
    Row{"find", "find", "[OPTIONS]", "Instructions, gaps and events: by place, kind and time.", "",
        0, kMany, nullptr},
    Row{"stats", "stats", "[OPTIONS]", "What the program was busy with.", "", 0, kMany, nullptr},
    Row{"coverage", "coverage", "[OPTIONS]", "What was executed, and how often.", "", 0, kMany,
        nullptr},
    Row{"diff", "diff", "[OPTIONS] OTHER",
        "Where this run and one in a folder went different ways.", "", 1, kMany, nullptr},
    Row{"export", "export", "--format=FORMAT [OPTIONS]",
        "Calls for other programs: folded, chrome.", "", 1, kMany, nullptr},
    Row{"open", nullptr, "FOLDER", "Look into a recording: tailtrace's or LLDB's own.", "", 1, 1,
        [](Session& s, const Words& w) { return open_recording(s, w[0]); }},
    Row{"close", nullptr, "", "Turn back from the recording to the process.", "", 0, 0,
        [](Session& s, const Words&) { return close_recording(s); }},
    Row{"override", nullptr, "on | off",
        "LLDB's `thread trace dump function-calls` and `thread trace export ctf` answer as ours.",
        "", 1, 1, override_or_not},
    Row{"goto", nullptr, "POSITION", "Go to a position of the history, as the listings have them.",
        "", 1, 1, go},
    Row{"live", nullptr, "", "Go back to where the program really stands.", "", 0, 0,
        [](Session& s, const Words&) {
          return is_loaded(s.target().GetProcess()) ? refuse_in_folder(s) : go_to(s, kPresent);
        }},
    Row{"back", nullptr, "",
        "Go back to the breakpoint before, or to the beginning of the history.", nullptr, 0, 0,
        step<back_to_breakpoint>},
    Row{"back-inst", nullptr, "", "Step back by one instruction.", nullptr, 0, 0,
        step<back_instruction>},
    Row{"back-line", nullptr, "",
        "Step back to the beginning of a line, into functions called from it.", nullptr, 0, 0,
        step<[](Session& s) { return back_line(s, true); }>},
    Row{"back-over", nullptr, "",
        "Step back to the beginning of a line, over functions called from it.", nullptr, 0, 0,
        step<[](Session& s) { return back_line(s, false); }>},
    Row{"back-out", nullptr, "", "Step back to the call of this function.", nullptr, 0, 0,
        step<back_out>},
    Row{"save", nullptr, "FOLDER",
        "Write the history into a new folder, to be read another day; by LLDB's trace load too.",
        "", 1, 1, save},
};

// Where a folder is open, the plugin records itself, or the command line's options are used, the
// command line answers what it has a verb for.
bool is_for_recording(Session& session, const Row& row, const Words& words) {
  if (row.verb == nullptr) return false;
  return row.run == nullptr || has_recording(session) || has_native(session) ||
         std::ranges::any_of(words, [](const std::string& w) { return w.starts_with("--"); });
}

// What LLDB has loaded, or another server has recorded for it, our server cannot answer.
bool is_lldbs(Session& session, const Row& row, const Error& refused) {
  return row.verb != nullptr && refused.code == ErrorCode::kNoEngine &&
         session.target().GetTrace().IsValid();
}

// Whether it is said what is asked about: a place, an item, or a thread.
bool names_subject(const Words& words) {
  return std::ranges::any_of(words, [](const std::string& word) {
    if (word.starts_with("--")) return word.starts_with("--at") || word.starts_with("--thread");
    return word.find_first_not_of("0123456789") != word.npos;  // else of an option
  });
}

// `stack POSITION COUNT` as the command line has it.
Result<Words> as_options(Session& session, const Words& words) {
  static constexpr const char* kNames[] = {"--at", "--frames"};
  Words numbers, options;
  for (const std::string& word : words)
    (word.starts_with("--") ? options : numbers).push_back(word);
  if (numbers.empty()) numbers.push_back(names_subject(words) ? "-1" : position_here(session));
  if (numbers.size() > std::size(kNames)) return misused("stack");
  for (std::size_t i = 0; i < numbers.size(); ++i)
    options.push_back(fmt::format("{}={}", kNames[i], numbers[i]));
  return options;
}

// A refusal of words names the command line's verb, and help that LLDB has not.
Error in_our_words(Error refused, const Row& row) {
  if (refused.fix != fmt::format("tailtrace help {}", row.verb)) return refused;
  refused.what = fmt::format("cannot understand the arguments of `tailtrace {}`", row.name);
  refused.fix = fmt::format("help tailtrace {}", row.name);
  return refused;
}

Result<void> ask_command_line(const Row& row, Session& session, Words words) {
  if (row.run == stack) {
    auto options = as_options(session, words);
    if (!options) return fail(std::move(options.error()));
    words = std::move(*options);
  }
  const bool is_hits = std::string_view(row.name) == "hits";
  const bool is_why = std::string_view(row.name) == "why";
  if (const std::int64_t stands = is_why && !names_subject(words) ? here(session) : 0; stands != 0)
    words.push_back(fmt::format("--at={}", stands));
  bool has_count = is_hits && words.size() == 2 && is_range(words[1]) && !words[1].starts_with('-');
  if (has_count) words[1] = "--limit=" + words[1];
  auto answered = ask_recording(session, row.verb, with_range(session, row.verb, std::move(words)));
  return answered ? answered : fail(in_our_words(std::move(answered.error()), row));
}

}  // namespace

std::span<const Row> rows() { return kRows; }

std::string syntax_of(const Row& row) {
  return fmt::format("tailtrace {}{}{}", row.name, *row.arguments == '\0' ? "" : " ",
                     row.arguments);
}

Result<void> run_row(const Row& row, Session& session, const Words& words) {
  if (words.size() < row.least || words.size() > row.most)
    return fail(ErrorCode::kUsage,
                fmt::format("cannot read `tailtrace {}{}{}`", row.name, words.empty() ? "" : " ",
                            joined(words)),
                "it is not what the command takes", syntax_of(row));
  if (is_for_recording(session, row, words)) return ask_command_line(row, session, words);
  auto done = row.run(session, words);
  return !done && is_lldbs(session, row, done.error()) ? ask_command_line(row, session, words)
                                                       : std::move(done);
}

}  // namespace tailtrace::lldb_plugin
