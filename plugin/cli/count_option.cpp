#include "plugin/cli/count_option.h"

#include <fmt/format.h>

#include <charconv>

namespace tailtrace {
namespace {

// Why a word is no such count; empty: it is one. What is larger than any number becomes the
// largest.
std::string trouble_with(std::string& word, std::uint64_t least, std::uint64_t most) {
  std::uint64_t number = 0;
  const char* const end = word.data() + word.size();
  const auto read = std::from_chars(word.data(), end, number);
  const bool is_number = read.ec != std::errc::invalid_argument && read.ptr == end;
  const bool is_beyond = read.ec == std::errc::result_out_of_range;
  if (is_beyond) number = kMostCounted;
  if (is_number && least <= number && number <= most) {
    if (is_beyond) word = std::to_string(number);  // the parser's later versions refuse it
    return {};
  }
  return most == kMostCounted ? fmt::format("`{}` is no number from {} on", word, least)
                              : fmt::format("`{}` is no number from {} to {}", word, least, most);
}

}  // namespace

CLI::Validator number_between(std::uint64_t least, std::uint64_t most) {
  auto check = [=](std::string& word) { return trouble_with(word, least, most); };
  return CLI::Validator(check, "");
}

CLI::Option* add_count(CLI::App& app, const std::string& name, std::uint64_t& count,
                       const std::string& text, std::uint64_t least) {
  return app.add_option(name, count, text)->type_name("N")->transform(number_between(least));
}

}  // namespace tailtrace
