#include "plugin/cli/count_option.h"

#include <fmt/format.h>

#include <charconv>

namespace tailtrace {
namespace {

// Why a word is no such count; empty: it is one.
std::string trouble_with(const std::string& word, std::uint64_t least) {
  std::uint64_t number = 0;
  const char* const end = word.data() + word.size();
  const auto read = std::from_chars(word.data(), end, number);
  const bool is_large = read.ec == std::errc::result_out_of_range || number >= least;
  if (read.ec != std::errc::invalid_argument && read.ptr == end && is_large) return {};
  return fmt::format("`{}` is no number from {} on", word, least);
}

}  // namespace

CLI::Option* add_count(CLI::App& app, const std::string& name, std::uint64_t& count,
                       const std::string& text, std::uint64_t least) {
  auto check = [least](const std::string& word) { return trouble_with(word, least); };
  return app.add_option(name, count, text)->type_name("N")->check(CLI::Validator(check, ""));
}

}  // namespace tailtrace
