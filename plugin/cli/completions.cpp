#include <fmt/format.h>

#include "decoder/base/text.h"
#include "plugin/cli/help.h"
#include "plugin/cli/manual.h"

namespace tailtrace {
namespace {

std::vector<std::string> verbs_of(const std::vector<Command>& table) {
  std::vector<std::string> verbs;
  for (const auto& command : table) verbs.emplace_back(command.name);
  verbs.emplace_back("help");
  return verbs;
}

// The options as they are typed: with a `=` behind them if a value follows.
std::vector<std::string> completed_options(const Command& command) {
  std::vector<std::string> words;
  for (const auto& option : options_of(command)) {
    if (option.positional) continue;
    for (const auto& name : option.names) words.push_back(option.value.empty() ? name : name + "=");
  }
  return words;
}

}  // namespace

std::string bash_completion(const std::vector<Command>& table) {
  std::string cases;
  for (const auto& command : table) {
    for (const auto& option : options_of(command))
      if (!option.choices.empty())
        cases += fmt::format("    '{} {}') words={} ;;\n", command.name, option.names.back(),
                             shell_quoted(fmt::format("{}", fmt::join(option.choices, " "))));
    cases +=
        fmt::format("    '{} '*) words={} ;;\n", command.name,
                    shell_quoted(fmt::format("{}", fmt::join(completed_options(command), " "))));
  }
  return fmt::format(R"(# Made by `tailtrace help --bash`.
_tailtrace() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} verb=${{COMP_WORDS[1]}} option= words= word
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W {} -- "$current"))
    return
  fi
  for word in "${{COMP_WORDS[@]:2:COMP_CWORD-2}}"; do
    if [[ $word == -- ]]; then COMPREPLY=($(compgen -f -- "$current")); return; fi
  done
  # Where `=` is a word of its own, as it is by default, the option is the word before it.
  if [[ $current == = ]]; then option=${{COMP_WORDS[COMP_CWORD-1]}} current=
  elif [[ ${{COMP_WORDS[COMP_CWORD-1]}} == = ]]; then option=${{COMP_WORDS[COMP_CWORD-2]}}
  elif [[ $verb != help && $current != -* ]]; then
    COMPREPLY=($(compgen -f -- "$current"))
    return
  fi
  case "$verb $option" in
{}    'help '*) words={} ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [[ ${{COMPREPLY-}} != *= ]] || compopt -o nospace 2> /dev/null
}}
complete -o default -F _tailtrace tailtrace
)",
                     shell_quoted(fmt::format("{}", fmt::join(verbs_of(table), " "))), cases,
                     shell_quoted(fmt::format("{}", fmt::join(verbs_of(table), " "))));
}

std::string zsh_completion(const std::vector<Command>& table) {
  // In _arguments' words brackets and colons part the description from the rest.
  auto plain = [](std::string_view text) {
    std::string result;
    for (char c : text) result += std::string_view("[]:\\").find(c) == text.npos ? c : ' ';
    return result;
  };
  std::string verbs, cases;
  for (const auto& command : table) {
    verbs +=
        fmt::format("    {}\n", shell_quoted(fmt::format("{}:{}", command.name, command.summary)));
    cases += fmt::format("    {}) _arguments \\\n", command.name);
    for (const auto& option : options_of(command)) {
      if (option.positional) continue;
      for (const auto& name : option.names) {
        std::string spec =
            fmt::format("{}{}[{}]", name, option.value.empty() ? "" : "=", plain(option.text));
        if (!option.choices.empty())
          spec += fmt::format(":value:({})", fmt::join(option.choices, " "));
        else if (!option.value.empty())
          spec += fmt::format(":{}:_files", plain(option.value));
        cases += fmt::format("      {} \\\n", shell_quoted(spec));
      }
    }
    cases += "      '*:file:_files' ;;\n";
  }
  return fmt::format(R"(#compdef tailtrace
# Made by `tailtrace help --zsh`.
_tailtrace() {{
  local -a verbs=(
{}    'help:Explain a verb'
  )
  if ((CURRENT == 2)); then
    _describe verb verbs
    return
  fi
  local verb=$words[2]
  shift words
  ((CURRENT--))
  case $verb in
{}    help) _describe verb verbs ;;
  esac
}}
_tailtrace "$@"
)",
                     verbs, cases);
}

std::string fish_completion(const std::vector<Command>& table) {
  std::string text = "# Made by `tailtrace help --fish`.\n";
  for (const auto& command : table) {
    text += fmt::format("complete -c tailtrace -f -n __fish_use_subcommand -a {} -d {}\n",
                        command.name, shell_quoted(command.summary));
    for (const auto& option : options_of(command)) {
      if (option.positional) continue;
      for (const auto& name : option.names)
        text += fmt::format(
            "complete -c tailtrace -n '__fish_seen_subcommand_from {}' -l {} -d {}{}\n",
            command.name, name.substr(name.find_first_not_of('-')), shell_quoted(option.text),
            option.choices.empty()
                ? std::string(option.value.empty() ? "" : " -r")
                : " -x -a " + shell_quoted(fmt::format("{}", fmt::join(option.choices, " "))));
    }
  }
  return text;
}

}  // namespace tailtrace
