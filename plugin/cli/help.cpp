#include "plugin/cli/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace tailtrace {
namespace {

constexpr std::size_t kWidth_columns = 80;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

// `text` in lines that begin at column `indent` and end before the screen does.
std::string wrapped(const std::string& text, std::size_t indent) {
  std::istringstream words(text);
  std::string result, line;
  for (std::string word; words >> word;) {
    if (!line.empty() && indent + line.size() + 1 + word.size() > kWidth_columns) {
      result += line + "\n" + std::string(indent, ' ');
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return result + line;
}

OptionHelp describe(const CLI::Option& option) {
  OptionHelp help;
  help.positional = option.nonpositional() ? false : true;
  help.text = option.get_description();
  if (help.positional) {
    help.names.push_back(option.get_name(true));
    return help;
  }
  for (const auto& name : option.get_snames()) help.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) help.names.push_back("--" + name);
  if (option.get_items_expected_max() == 0) return help;
  help.value = option.get_type_name();
  help.value.resize(
      std::min(help.value.size(), help.value.find(':')));  // a check adds its own name
  if (help.value.find('|') != std::string::npos) help.choices = split(help.value, '|');
  return help;
}

std::string option_head(const OptionHelp& option) {
  std::string head = fmt::format("{}", fmt::join(option.names, ", "));
  if (!option.value.empty()) head += "=" + option.value;
  return head;
}

// A head of many choices in lines that end before the screen does.
std::string broken(const std::string& head, std::size_t indent) {
  if (indent + head.size() <= kWidth_columns) return head;
  const std::size_t end = head.rfind('|', kWidth_columns - indent - 1);
  if (end == head.npos) return head;
  const std::string inner(4, ' ');
  return head.substr(0, end + 1) + "\n" + std::string(indent, ' ') + inner +
         broken(head.substr(end + 1), indent + inner.size());
}

// Two columns; a head too wide for its column has its text on the next line.
std::string two_columns(const std::string& head, const std::string& text, std::size_t column) {
  std::string line = "  " + broken(head, 2);
  if (line.size() + 2 <= column)
    line.resize(column, ' ');
  else
    line += "\n" + std::string(column, ' ');
  return line + wrapped(text, column) + "\n";
}

std::string examples_help(const Command& command) {
  std::size_t widest = 0;
  for (const auto& example : command.examples) widest = std::max(widest, example.line.size());
  std::string text;
  for (const auto& example : command.examples) {
    if (2 + widest + 2 + example.says.size() <= kWidth_columns)
      text += fmt::format("  {:{}}  {}\n", example.line, widest, example.says);
    else
      text += fmt::format("  {}\n      {}\n", example.line, example.says);
  }
  return text;
}

}  // namespace

std::vector<OptionHelp> options_of(const Command& command) {
  CLI::App app;
  app.set_help_flag(kHelpFlag, "show this help");
  auto keep_variables_alive = command.define(app);
  std::vector<OptionHelp> options;
  for (const CLI::Option* option : app.get_options()) options.push_back(describe(*option));
  // The help flag is every command's and not news: last.
  std::stable_partition(options.begin(), options.end(),
                        [](const OptionHelp& option) { return option.names.back() != "--help"; });
  return options;
}

std::string overview_help(const std::vector<Command>& table) {
  std::string text =
      "tailtrace: what ran just before the stop, for GDB and LLDB\n\n"
      "usage: tailtrace VERB [OPTIONS]\n\n";
  for (const auto& command : table)
    text += two_columns(std::string(command.name), std::string(command.summary), 14);
  text += two_columns("help", "Explain a verb: tailtrace help VERB", 14);
  text +=
      "\n  --version   print the version\n"
      "\nexit status: 0 done; 1 the answer is no; 2 usage; 3 no usable engine; 4 permission;\n"
      "5 bad input file; 6 gaps and --strict; 7 a system call failed; 8 process gone\n";
  return text;
}

std::string command_help(const Command& command) {
  std::string text =
      fmt::format("{}\n\nusage: tailtrace {} {}\n", command.summary, command.name, command.usage);
  if (!command.examples.empty()) text += "\nexamples:\n" + examples_help(command);
  text += "\noptions:\n";
  for (const auto& option : options_of(command))
    text += two_columns(option_head(option), option.text, 26);
  return text;
}

}  // namespace tailtrace
