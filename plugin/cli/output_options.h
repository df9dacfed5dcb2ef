// The conventions that commands which print data share: --json, --color.
//
// Threading: values.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "decoder/base/types.h"

namespace tailtrace {

enum class JsonForm { kNone, kDocument, kLines };

struct OutputOptions {
  JsonForm json = JsonForm::kNone;
  std::string color = "auto";
  std::string json_text;  // the parser's

  // Whether to colour what goes to `out`: --color, else NO_COLOR and a dumb terminal, else whether
  // it is a terminal. JSON is never coloured.
  bool use_color(std::FILE* out) const;
};

// Whether TERM is `dumb`, empty or not set: nobody knows what the terminal can show.
bool terminal_is_dumb();

// Adds --json and --color; the options live as long as the pointer or the App.
std::shared_ptr<OutputOptions> add_output_options(CLI::App& app);

// A JSON document begins with its schema, "tailtrace.NAME/VERSION". It ends with a line feed, its
// only one in the form kLines. REQUIRES: a form other than kNone.
void print_json(std::FILE* out, std::string_view schema, const nlohmann::ordered_json& document,
                JsonForm form);

// An address as JSON carries it: "0x401136".
std::string json_address(Address address);

}  // namespace tailtrace
