#include "plugin/cli/count_option.h"

#include <fmt/format.h>

#include <charconv>

namespace tailtrace {
namespace {

// Why a word is no such count; empty: it is one. What is larger than any number is the largest.
std::string trouble_with(const std::string& word, std::uint64_t least, std::uint64_t most) {
  std::uint64_t number = 0;
  const char* const end = word.data() + word.size();
  const auto read = std::from_chars(word.data(), end, number);
  if (read.ec == std::errc::result_out_of_range) number = kMostCounted;
  if (read.ec != std::errc::invalid_argument && read.ptr == end && least <= number &&
      number <= most)
    return {};
  return most == kMostCounted ? fmt::format("`{}` is no number from {} on", word, least)
                              : fmt::format("`{}` is no number from {} to {}", word, least, most);
}

}  // namespace

CLI::Validator number_between(std::uint64_t least, std::uint64_t most) {
  auto check = [=](const std::string& word) { return trouble_with(word, least, most); };
  return CLI::Validator(check, "");
}

CLI::Option* add_count(CLI::App& app, const std::string& name, std::uint64_t& count,
                       const std::string& text, std::uint64_t least) {
  return app.add_option(name, count, text)->type_name("N")->check(number_between(least));
}

}  // namespace tailtrace
