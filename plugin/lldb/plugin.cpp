// liblldb-tailtrace.so: `plugin load` adds the command `tailtrace` to LLDB.
//
// Whatever the commands show comes from the debug server, where the history is; they are words for
// its answers and LLDB's way to ask.
#include <fmt/format.h>

#include <array>

#include "plugin/lldb/back.h"
#include "plugin/lldb/search.h"

namespace tailtrace::lldb_plugin {
namespace {

using Words = std::vector<std::string>;

constexpr std::uint64_t kPage = 10;

struct Row {
  const char* name;
  const char* arguments;
  const char* help;
  const char* repeat;  // what Enter does then; null: the same again
  std::size_t least, most;
  Result<void> (*run)(Session&, const Words&);
};

std::string joined(const Words& words) { return fmt::format("{}", fmt::join(words, " ")); }

Result<void> show(Session& session, Result<std::string> text) {
  if (!text) return fail(std::move(text.error()));
  session.print(*text);
  return {};
}

Result<std::uint64_t> count_in(const Words& words, std::size_t at, std::uint64_t otherwise) {
  if (words.size() <= at) return otherwise;
  char* end = nullptr;
  std::uint64_t count = std::strtoull(words[at].c_str(), &end, 10);
  if (*end == '\0' && count > 0 && count <= 10'000) return count;
  return fail(ErrorCode::kUsage, fmt::format("cannot show {} of them", words[at]),
              "it is no number from 1 to 10000");
}

Result<void> source(Session& session, const Words& words) {
  auto count = count_in(words, 0, kPage);
  return count ? show_source(session, *count) : fail(std::move(count.error()));
}

Result<void> hits(Session& session, const Words& words) {
  auto count = count_in(words, 1, kPage);
  return count ? show_hits(session, words[0], *count) : fail(std::move(count.error()));
}

Result<void> go(Session& session, const Words& words) {
  auto number = number_of(session, words[0]);
  return number ? go_to(session, *number) : fail(std::move(number.error()));
}

Result<void> live(Session& session, const Words&) {
  auto newest = number_of(session, "-1");
  return newest ? go_to(session, *newest + 1) : fail(std::move(newest.error()));
}

constexpr std::array kRows = {
    Row{"start", "", "Record all threads of the process from here on.", "", 0, 0,
        [](Session& s, const Words&) { return show(s, s.command("process trace start")); }},
    Row{"stop", "", "Stop recording, and drop the history.", "", 0, 0,
        [](Session& s, const Words&) { return show(s, s.command("process trace stop")); }},
    Row{"info", "", "What is recorded of each thread, and by which engine.", "", 0, 0,
        [](Session& s, const Words&) { return show(s, s.monitor("info")); }},
    Row{"instructions", "[N | N,M | N,+K | N,-K | -]",
        "The instructions that led here, loops folded, gaps explained; Enter goes on backwards.",
        "tailtrace instructions -", 0, 1,
        [](Session& s, const Words& w) {
          return show(s, s.monitor("instruction-history /fs " + joined(w)));
        }},
    Row{"source", "[COUNT]", "The source lines that led here.", "", 0, 1, source},
    Row{"calls", "[N | N,M | N,+K | N,-K | -]",
        "The functions that led here, indented by level; Enter goes on backwards.",
        "tailtrace calls -", 0, 1,
        [](Session& s, const Words& w) {
          return show(s, s.monitor("function-call-history " + joined(w)));
        }},
    Row{"last", "LOCATION", "When FUNCTION, FILE:LINE or 0xADDRESS was executed last.", "", 1, 1,
        [](Session& s, const Words& w) { return show_hits(s, w[0], 1); }},
    Row{"hits", "LOCATION [COUNT]", "When it was executed, the newest times.", "", 1, 2, hits},
    Row{"goto", "POSITION", "Go to a position of the history, as the listings have them.", "", 1, 1,
        go},
    Row{"live", "", "Go back to where the program really stands.", "", 0, 0, live},
    Row{"back", "", "Go back to the breakpoint before, or to the beginning of the history.",
        nullptr, 0, 0, [](Session& s, const Words&) { return back_to_breakpoint(s); }},
    Row{"back-inst", "", "Step back by one instruction.", nullptr, 0, 0,
        [](Session& s, const Words&) { return back_instruction(s); }},
    Row{"back-line", "", "Step back to the beginning of a line, into functions called from it.",
        nullptr, 0, 0, [](Session& s, const Words&) { return back_line(s, true); }},
    Row{"back-over", "", "Step back to the beginning of a line, over functions called from it.",
        nullptr, 0, 0, [](Session& s, const Words&) { return back_line(s, false); }},
    Row{"back-out", "", "Step back to the call of this function.", nullptr, 0, 0,
        [](Session& s, const Words&) { return back_out(s); }},
    Row{"save", "FOLDER", "Write the history into a new folder, to be read another day.", "", 1, 1,
        [](Session& s, const Words& w) { return show(s, s.monitor("save " + w[0])); }},
};

std::string syntax_of(const Row& row) {
  return fmt::format("tailtrace {}{}{}", row.name, *row.arguments == '\0' ? "" : " ",
                     row.arguments);
}

class RowCommand final : public lldb::SBCommandPluginInterface {
 public:
  explicit RowCommand(const Row& row) : row_(row) {}

  bool DoExecute(lldb::SBDebugger debugger, char** command,
                 lldb::SBCommandReturnObject& result) override {
    Session session(debugger, result);
    Words words;
    for (; command != nullptr && *command != nullptr; ++command) words.emplace_back(*command);
    Result<void> done =
        words.size() < row_.least || words.size() > row_.most
            ? fail(ErrorCode::kUsage,
                   fmt::format("cannot read `tailtrace {} {}`", row_.name, joined(words)),
                   "it is not what the command takes", syntax_of(row_))
            : row_.run(session, words);
    if (!done) session.fail_with(done.error());
    if (done) result.SetStatus(lldb::eReturnStatusSuccessFinishResult);
    return static_cast<bool>(done);
  }

 private:
  const Row& row_;
};

bool add_commands(lldb::SBDebugger debugger) {
  lldb::SBCommand prefix = debugger.GetCommandInterpreter().AddMultiwordCommand(
      "tailtrace", "How the program came to where it stands, and stepping back.");
  if (!prefix.IsValid()) return false;
  for (const Row& row : kRows)
    // LLDB keeps them as long as it lives.
    prefix.AddCommand(row.name, new RowCommand(row), row.help, syntax_of(row).c_str(), row.repeat);
  return true;
}

}  // namespace
}  // namespace tailtrace::lldb_plugin

namespace lldb {

// What `plugin load` calls.
__attribute__((visibility("default"))) bool PluginInitialize(SBDebugger debugger) {
  return tailtrace::lldb_plugin::add_commands(debugger);
}

}  // namespace lldb
