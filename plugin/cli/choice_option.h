// Options that take one of a few words, such as --color=auto|always|never.
//
// Threading: the main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace tailtrace {

// Adds one. Help shows the words, completions offer them, and any other is refused.
CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& word,
                        const std::string& text, const std::vector<std::string>& choices);

}  // namespace tailtrace
