#include "plugin/cli/output_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "decoder/base/json_text.h"
#include "plugin/cli/choice_option.h"

namespace tailtrace {
namespace {

using OrderedJson = nlohmann::ordered_json;

bool environment_forbids_color() {
  const char* no_color = std::getenv("NO_COLOR");
  return (no_color != nullptr && *no_color != '\0') || terminal_is_dumb();
}

void parse_json_form(const std::string& text, JsonForm& form) {
  if (text == "true")  // the switch without a value
    form = JsonForm::kDocument;
  else if (text == "lines")
    form = JsonForm::kLines;
  else
    throw CLI::ValidationError("`" + text + "` is not `lines`");
}

}  // namespace

bool terminal_is_dumb() {
  const char* terminal = std::getenv("TERM");
  return terminal == nullptr || *terminal == '\0' || std::string_view(terminal) == "dumb";
}

bool OutputOptions::use_color(std::FILE* out) const {
  if (json != JsonForm::kNone || color == "never") return false;
  if (color == "always") return true;
  return !environment_forbids_color() && ::isatty(::fileno(out)) != 0;
}

std::shared_ptr<OutputOptions> add_output_options(CLI::App& app) {
  auto options = std::make_shared<OutputOptions>();
  app.add_flag("--json", options->json_text, "print JSON; --json=lines: a document a line")
      ->each([options](const std::string& text) { parse_json_form(text, options->json); });
  add_choice(app, "--color", options->color, "colour the output", {"auto", "always", "never"});
  return options;
}

void print_json(std::FILE* out, std::string_view schema, const nlohmann::ordered_json& document,
                JsonForm form) {
  OrderedJson whole = {{"schema", schema}};
  whole.update(document);
  if (form == JsonForm::kLines) return fmt::print(out, "{}\n", json_text(whole));
  fmt::print(out, "{}\n", whole.dump(2, ' ', false, OrderedJson::error_handler_t::replace));
}

std::string json_address(Address address) { return fmt::format("0x{:x}", address.value); }

}  // namespace tailtrace
