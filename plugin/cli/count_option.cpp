#include "plugin/cli/count_option.h"

#include <fmt/format.h>

#include <charconv>

namespace tailtrace {
namespace {

// Why a word is no count; empty: it is one.
std::string trouble_with(const std::string& word) {
  std::uint64_t number = 0;
  const char* const end = word.data() + word.size();
  const auto read = std::from_chars(word.data(), end, number);
  if (read.ec != std::errc::invalid_argument && read.ptr == end) return {};
  return fmt::format("`{}` is no number from 0 on", word);
}

}  // namespace

CLI::Option* add_count(CLI::App& app, const std::string& name, std::uint64_t& count,
                       const std::string& text) {
  return app.add_option(name, count, text)->type_name("N")->check(CLI::Validator(trouble_with, ""));
}

}  // namespace tailtrace
