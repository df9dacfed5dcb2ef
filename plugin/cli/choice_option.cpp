#include "plugin/cli/choice_option.h"

#include <fmt/format.h>

#include <algorithm>

namespace tailtrace {

CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& word,
                        const std::string& text, const std::vector<std::string>& choices) {
  auto check = [choices](const std::string& given) {
    if (std::ranges::find(choices, given) != choices.end()) return std::string();
    return fmt::format("`{}` is none of {}", given, fmt::join(choices, ", "));
  };
  return app.add_option(name, word, text)
      ->type_name(fmt::format("{}", fmt::join(choices, "|")))
      ->check(CLI::Validator(check, ""));
}

}  // namespace tailtrace
