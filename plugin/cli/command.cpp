#include "plugin/cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <new>
#include <numeric>
#include <stdexcept>
#include <system_error>

#include "plugin/cli/help.h"
#include "plugin/cli/manual.h"

namespace tailtrace {
namespace {

constexpr std::size_t kNear_edits = 2;

// How many letters must be inserted, deleted or exchanged to make one word of the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t exchanged = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, exchanged});
    }
  }
  return row.back();
}

// The one of several names that may be meant by what was typed; empty: none is near.
class NearestName {
 public:
  explicit NearestName(std::string_view typed) : typed_(typed) {}

  void offer(std::string_view name) {
    // An abbreviation counts as near, however short.
    const bool abbreviates = !typed_.empty() && name.starts_with(typed_);
    const std::size_t distance = abbreviates ? 0 : edit_distance(typed_, name);
    if (distance >= std::min(smallest_, name.size())) return;
    smallest_ = distance;
    name_ = name;
  }
  const std::string& name() const { return name_; }

 private:
  std::string_view typed_;
  std::string name_;
  std::size_t smallest_ = kNear_edits + 1;
};

const Command* find(const std::vector<Command>& table, std::string_view name) {
  auto found = std::find_if(table.begin(), table.end(),
                            [&](const Command& command) { return command.name == name; });
  return found == table.end() ? nullptr : &*found;
}

Result<const Command*> find_or_suggest(const std::vector<Command>& table, const std::string& verb) {
  if (const Command* command = find(table, verb)) return command;
  std::string nearest = nearest_verb(table, verb);
  return fail(ErrorCode::kUsage, fmt::format("`{}` is no verb of tailtrace", verb), "",
              nearest.empty() ? "tailtrace help" : "tailtrace " + nearest);
}

Result<int> print(const std::string& text, std::FILE* out) {
  fmt::print(out, "{}", text);
  return kExitDone;
}

Result<int> show_help(const std::vector<Command>& table, const std::vector<std::string>& args,
                      std::FILE* out) {
  if (args.empty() || args.front() == "help") return print(overview_help(table), out);
  constexpr std::pair<std::string_view, std::string (*)(const std::vector<Command>&)> kFiles[] = {
      {"--man", man_page},
      {"--bash", bash_completion},
      {"--zsh", zsh_completion},
      {"--fish", fish_completion},
      {"--json", table_json}};
  for (auto [name, make] : kFiles)
    if (args.front() == name) return print(make(table), out);
  auto command = find_or_suggest(table, args.front());
  if (!command) return fail(command.error());
  return print(command_help(**command), out);
}

tl::unexpected<Error> unusable_arguments(std::string_view verb, const std::string& why,
                                         std::string fix = "") {
  if (fix.empty()) fix = fmt::format("tailtrace help {}", verb);
  return fail(ErrorCode::kUsage,
              fmt::format("cannot understand the arguments of tailtrace {}", verb), why,
              std::move(fix));
}

// A word that no option took, and no place is left for.
tl::unexpected<Error> unexpected_word(std::string_view verb, const CLI::App& app,
                                      const std::string& word) {
  if (!word.starts_with('-'))
    return unusable_arguments(verb, fmt::format("`{}` is one word too many", word));
  const std::string typed = word.substr(0, word.find('='));
  NearestName nearest(typed);
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) nearest.offer("--" + name);
  return unusable_arguments(
      verb, fmt::format("`{}` is no option", typed),
      nearest.name().empty() ? "" : fmt::format("`{}`, if that is meant", nearest.name()));
}

// The first that was given an empty word, as of a variable that is not set; null: there is none.
const CLI::Option* empty_one(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options())
    if (std::ranges::count(option->results(), "") != 0) return option;
  return nullptr;
}

// The same for `--option=`, for which the parser would take the next word. What comes behind a
// program's name is the program's.
const CLI::Option* cut_short(const CLI::App& app, const std::vector<std::string>& args) {
  for (const std::string& word : args) {
    if (app.get_prefix_command() && !word.starts_with('-')) break;
    if (!word.starts_with("--") || !word.ends_with('=')) continue;
    if (const auto* option = app.get_option_no_throw(word.substr(0, word.size() - 1)))
      return option;
  }
  return nullptr;
}

Result<int> parse_and_run(const Command& command, std::vector<std::string> args, std::FILE* out,
                          std::FILE* err) {
  Invocation invocation{{}, {}, out, err};
  CLI::App app(std::string(command.summary), "tailtrace " + std::string(command.name));
  app.set_help_flag(kHelpFlag, "show this help");
  RunCommand run = command.define(app);
  if (command.take_program) {
    auto program = command.take_program(args);
    if (!program) return fail(program.error());
    invocation.program = std::move(*program);
  }
  if (const CLI::Option* option = cut_short(app, args))
    return unusable_arguments(command.name, option->get_name() + " is empty");
  std::reverse(args.begin(), args.end());  // the parser wants its next word last
  try {
    app.parse(args);
  } catch (const CLI::CallForHelp&) {
    return print(command_help(command), out);
  } catch (const CLI::ExtrasError&) {
    return unexpected_word(command.name, app, app.remaining().front());
  } catch (const CLI::ParseError& error) {
    return unusable_arguments(command.name, error.what());
  }
  if (const CLI::Option* option = empty_one(app))
    return unusable_arguments(command.name, option->get_name() + " is empty");
  invocation.extras = app.remaining();
  return run(invocation);
}

Result<int> dispatch(const std::vector<Command>& table, std::vector<std::string> args,
                     std::FILE* out, std::FILE* err) {
  if (args.empty()) return fail(ErrorCode::kUsage, "tailtrace needs a verb", "", "tailtrace help");
  std::string verb = args.front();
  args.erase(args.begin());
  if (verb == "--help" || verb == "-h" || verb == "help") return show_help(table, args, out);
  if (verb == "--version") return print("tailtrace " TAILTRACE_VERSION "\n", out);
  auto command = find_or_suggest(table, verb);
  if (!command) return fail(command.error());
  return parse_and_run(**command, std::move(args), out, err);
}

tl::unexpected<Error> out_of_memory() {
  return fail(ErrorCode::kSystem, "cannot go on", "there is not enough memory",
              "ask for less (--records, --range, --limit), or raise the limit (`ulimit -v`)");
}

Error cannot_write(int error) {
  constexpr char kWhat[] = "cannot write the output";
  if (error != EBADF) return system_error(kWhat, error);
  return {ErrorCode::kSystem, kWhat, "the standard output is closed", "send it to /dev/null", ""};
}

// What prints throws when it cannot; so does what starts threads, or takes memory.
Result<int> attempt(const std::vector<Command>& table, std::vector<std::string> args,
                    std::FILE* out, std::FILE* err) {
  try {
    return dispatch(table, std::move(args), out, err);
  } catch (const std::system_error& error) {
    if (std::ferror(out) != 0 || std::ferror(err) != 0)
      return fail(cannot_write(error.code().value()));
    return fail(ErrorCode::kSystem, "cannot go on", error.what());
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::length_error&) {  // more than there is of any memory
    return out_of_memory();
  }
}

// A full disk must not pass for success.
Result<int> flushed(Result<int> status, std::FILE* out) {
  if (!status) return status;
  if (std::fflush(out) != 0) return fail(cannot_write(errno));
  // Why was known when it was written.
  if (std::ferror(out) != 0) return fail(ErrorCode::kSystem, "cannot write the output");
  return status;
}

}  // namespace

Result<std::vector<std::string>> take_behind_dashes(std::vector<std::string>& args) {
  auto dashes = std::find(args.begin(), args.end(), "--");
  if (dashes == args.end()) return std::vector<std::string>{};
  std::vector<std::string> program(dashes + 1, args.end());
  args.erase(dashes, args.end());
  return program;
}

std::string nearest_verb(const std::vector<Command>& table, std::string_view typed) {
  NearestName nearest(typed);
  for (const auto& command : table) {
    const auto& others = command.elsewhere;
    if (std::find(others.begin(), others.end(), typed) != others.end())
      return std::string(command.name);
    nearest.offer(command.name);
  }
  return nearest.name();
}

int run_command_line(const std::vector<Command>& table, std::vector<std::string> args,
                     std::FILE* out, std::FILE* err) {
  Result<int> status = flushed(attempt(table, std::move(args), out, err), out);
  if (status) return *status;
  std::fflush(out);
  std::fputs((status.error().to_string() + "\n").c_str(), err);
  return static_cast<int>(status.error().code);
}

}  // namespace tailtrace
